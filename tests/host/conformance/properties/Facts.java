// SPDX-License-Identifier: Apache-2.0
import java.beans.Introspector;
import java.beans.PropertyDescriptor;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;

/** Compares what "property_facts WHAT NUMBER" prints on stdin, a fact each line, with Java. */
public class Facts {
    private static final String DAEMON = "software.amazon.kinesis.multilang.";
    private static int seen = 0;
    private static int different = 0;

    public static void main(String[] arguments) throws Exception {
        boolean isTable = arguments[0].equals("table");
        Set<String> real = isTable ? keys() : null;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine(), seen++) {
            if (!isTable) compareFile(line);
            else check(real.remove(canonical(line, arguments[1])), line + ": the table has it, the daemon does not");
        }
        if (isTable) real.forEach(key -> check(false, key + ": the daemon has it, the table does not"));
        System.out.println(seen + " seen, " + different + " differences");
        System.exit(seen > 0 && different == 0 ? 0 : 1);
    }

    private static void check(boolean same, String difference) {
        if (same) return;
        different++;
        System.out.println(difference);
    }

    /** The keys of the daemon: those that it asks for by name, and the properties of its beans. */
    private static Set<String> keys() throws Exception {
        Set<String> all = new TreeSet<>();
        for (Field field : Class.forName(DAEMON + "MultiLangDaemonConfig").getDeclaredFields()) {
            if (!Modifier.isStatic(field.getModifiers()) || !field.getName().startsWith("PROP_")) continue;
            field.setAccessible(true);
            all.add((String) field.get(null));
        }
        bean(all, "", "config.MultiLangDaemonConfiguration");
        bean(all, "fanoutConfig.", "config.FanoutConfigBean");
        return all;
    }

    private static void bean(Set<String> all, String prefix, String name) throws Exception {
        for (PropertyDescriptor one
                : Introspector.getBeanInfo(Class.forName(DAEMON + name)).getPropertyDescriptors()) {
            if (one.getWriteMethod() != null) all.add(prefix + one.getName());
        }
    }

    private static String canonical(String key, String kcl) {
        boolean isProvider = kcl.equals("3") && key.startsWith("AwsCredentialsProvider");
        return isProvider ? Character.toLowerCase(key.charAt(0)) + key.substring(1) : key;
    }

    /** What java.util.Properties makes of a file, and of what the tool has written of it. */
    private static void compareFile(String fact) throws Exception {
        String file = fact.substring(1, fact.indexOf('>'));
        String ours = fact.substring(fact.indexOf('>') + 2);
        Properties real = load(file);
        check(real == null ? ours.equals("malformed") : !ours.equals("malformed") && real.equals(load(ours)),
                "file " + file + ": " + real + "; the tool has written " + ours);
    }

    private static Properties load(String hex) throws Exception {
        byte[] bytes = new byte[hex.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        }
        Properties all = new Properties();
        try {
            all.load(new ByteArrayInputStream(bytes));
        } catch (IllegalArgumentException malformed) {
            return null;
        }
        return all;
    }
}
