// SPDX-License-Identifier: Apache-2.0
import java.beans.Introspector;
import java.beans.PropertyDescriptor;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;

/** Compares what "property_facts WHAT NUMBER" prints on stdin, a fact each line, with Java. */
public class Facts {
    private static final String FIRST = "com.amazonaws.services.kinesis.";
    private static final String LATER = "software.amazon.kinesis.multilang.";
    private static int seen = 0;
    private static int different = 0;

    interface Comparison {
        void compare(String fact) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "table" -> compareKeys(arguments[1]);
            case "providers" -> compareProviders(arguments[1]);
            default -> compareFiles();
        }
        System.out.println(seen + " seen, " + different + " differences");
        System.exit(seen > 0 && different == 0 ? 0 : 1);
    }

    private static void forEach(Comparison comparison) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            comparison.compare(line);
        }
    }

    private static void check(boolean same, String difference) {
        if (!same) {
            different++;
            System.out.println(difference);
        }
    }

    /** The keys of the daemon of a major version, and their types. */
    private static void compareKeys(String kcl) throws Exception {
        Map<String, String> real = new TreeMap<>();
        if (kcl.equals("1")) {
            readFirst(real);
        } else {
            constants(real, LATER + "MultiLangDaemonConfig");
            bean(real, "", LATER + "config.MultiLangDaemonConfiguration");
            bean(real, "fanoutConfig.", LATER + "config.FanoutConfigBean");
        }
        forEach(fact -> {
            String[] row = fact.split(" ");
            String type = real.remove(canonical(row[0], kcl));
            seen++;
            check(type != null && (type.equals("-") || row[1].equals("-") || type.equals(row[1])
                    || kcl.equals("1") && sameInFirst(type, row[1])),
                    row[0] + ": the table has " + row[1] + ", the daemon " + type);
        });
        for (String key : real.keySet()) {
            check(false, key + ": the daemon has it, the table does not");
        }
    }

    private static String canonical(String key, String kcl) {
        boolean isProvider = kcl.equals("3") && key.startsWith("AwsCredentialsProvider");
        return isProvider ? Character.toLowerCase(key.charAt(0)) + key.substring(1) : key;
    }

    /** 1.x converts by the types of its setters, and knows no wrappers. */
    private static boolean sameInFirst(String type, String ours) {
        switch (ours) {
            case "Integer": return type.equals("int");
            case "Long": return type.equals("long");
            case "Region": return type.equals("String");
            case "MetricsLevel": return type.equals("String");
            case "InitialPositionInStreamExtended": return type.equals("Date");
            case "String[]": return type.equals("Set");
            default: return false;
        }
    }

    private static void readFirst(Map<String, String> real) throws Exception {
        Class<?> type = Class.forName(FIRST + "clientlibrary.lib.worker.KinesisClientLibConfiguration");
        for (Method method : type.getMethods()) {
            String name = method.getName();
            if (!name.startsWith("with") || method.getParameterCount() != 1) {
                continue;
            }
            String key = Character.toLowerCase(name.charAt(4)) + name.substring(5);
            String parameter = method.getParameterTypes()[0].getSimpleName();
            real.merge(key, parameter, (one, other) -> one.equals("String") ? one : other);
        }
        constants(real, FIRST + "clientlibrary.config.KinesisClientLibConfigurator");
        constants(real, FIRST + "multilang.MultiLangDaemonConfig");
    }

    private static void bean(Map<String, String> real, String prefix, String name) throws Exception {
        for (PropertyDescriptor one : Introspector.getBeanInfo(Class.forName(name)).getPropertyDescriptors()) {
            if (one.getWriteMethod() != null) {
                real.put(prefix + one.getName(), one.getPropertyType().getSimpleName());
            }
        }
    }

    /** Keys that the daemon asks for by name. */
    private static void constants(Map<String, String> real, String name) throws Exception {
        for (Field field : Class.forName(name).getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) && field.getName().matches("PROP_.*|PROXY_.*_PROP")) {
                field.setAccessible(true);
                real.put((String) field.get(null), "-");
            }
        }
    }

    /** What the daemon's own decoder of credentials providers accepts. */
    private static void compareProviders(String kcl) throws Exception {
        String name = kcl.equals("1") ? FIRST + "clientlibrary.config.AWS"
                : LATER + "config." + (kcl.equals("2") ? "AWS" : "Aws");
        Class<?> type = Class.forName(name + "CredentialsProviderPropertyValueDecoder");
        Constructor<?> constructor = type.getDeclaredConstructor();
        constructor.setAccessible(true);
        Object decoder = constructor.newInstance();
        Method decode = type.getMethod("decodeValue", String.class);
        decode.setAccessible(true);
        forEach(fact -> {
            String[] row = fact.split(" ");
            String result = "accepted";
            try {
                decode.invoke(decoder, row[0]);
                seen++;
            } catch (InvocationTargetException error) {
                result = "refused";
            }
            check(result.equals(row[1]), row[0] + ": " + row[1] + " by the tool, " + result + " by the daemon");
        });
    }

    /** What java.util.Properties makes of each file. */
    private static void compareFiles() throws Exception {
        forEach(fact -> {
            int end = fact.indexOf('>');
            String file = fact.substring(1, end);
            byte[] bytes = new byte[file.length() / 4];
            for (int i = 0; i < bytes.length; i++) {
                bytes[i] = (byte) Integer.parseInt(file.substring(4 * i, 4 * i + 4), 16);
            }
            String real = kept(bytes);
            String ours = fact.substring(end + 2);
            seen++;
            check(real.equals(ours), "file " + file + "\n  java  " + real + "\n  kclxx " + ours);
        });
    }

    private static String kept(byte[] file) throws Exception {
        Properties properties = new Properties();
        try {
            properties.load(new ByteArrayInputStream(file));
        } catch (IllegalArgumentException e) {
            return "malformed";
        }
        StringBuilder text = new StringBuilder("{");
        for (Map.Entry<Object, Object> one : new TreeMap<>(properties).entrySet()) {
            text.append(hex((String) one.getKey())).append('=').append(hex((String) one.getValue())).append(',');
        }
        return text.append('}').toString();
    }

    private static String hex(String text) {
        StringBuilder digits = new StringBuilder();
        for (char c : text.toCharArray()) {
            digits.append(String.format("%04x", (int) c));
        }
        return digits.toString();
    }
}
