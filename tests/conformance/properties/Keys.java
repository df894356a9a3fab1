// SPDX-License-Identifier: Apache-2.0
import java.beans.Introspector;
import java.beans.PropertyDescriptor;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Map;
import java.util.TreeMap;

/** Compares the keys of "facts table N" on stdin with those that the daemon's classes have. */
public class Keys {
    private static final String FIRST = "com.amazonaws.services.kinesis.";
    private static final String LATER = "software.amazon.kinesis.multilang.";
    private static final Map<String, String> real = new TreeMap<>();

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("1")) {
            readFirst();
        } else {
            constants(LATER + "MultiLangDaemonConfig");
            bean("", LATER + "config.MultiLangDaemonConfiguration");
            bean("fanoutConfig.", LATER + "config.FanoutConfigBean");
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        int different = 0;
        int count = 0;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] row = line.split(" ");
            String type = real.remove(canonical(row[0], arguments[0]));
            count++;
            boolean same = type != null && (type.equals("-") || row[1].equals("-") || type.equals(row[1])
                    || arguments[0].equals("1") && sameInFirst(type, row[1]));
            if (!same) {
                different++;
                System.out.println(row[0] + ": the table has " + row[1] + ", the daemon " + type);
            }
        }
        for (String key : real.keySet()) {
            different++;
            System.out.println(key + ": the daemon has it, the table does not");
        }
        System.out.println(count + " keys, " + different + " differences");
        System.exit(count > 0 && different == 0 ? 0 : 1);
    }

    private static String canonical(String key, String generation) {
        boolean isProvider = generation.equals("3") && key.startsWith("AwsCredentialsProvider");
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

    private static void readFirst() throws Exception {
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
        constants(FIRST + "clientlibrary.config.KinesisClientLibConfigurator");
        constants(FIRST + "multilang.MultiLangDaemonConfig");
    }

    private static void bean(String prefix, String name) throws Exception {
        for (PropertyDescriptor one : Introspector.getBeanInfo(Class.forName(name)).getPropertyDescriptors()) {
            if (one.getWriteMethod() != null) {
                real.put(prefix + one.getName(), one.getPropertyType().getSimpleName());
            }
        }
    }

    /** Keys that the daemon asks for by name. */
    private static void constants(String name) throws Exception {
        for (Field field : Class.forName(name).getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) && field.getName().matches("PROP_.*|PROXY_.*_PROP")) {
                field.setAccessible(true);
                real.put((String) field.get(null), "-");
            }
        }
    }
}
