// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;

/** Reads the files of "facts properties" from stdin, and compares what java.util.Properties makes of each. */
public class ReadProperties {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        int count = 0;
        int different = 0;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            int end = line.indexOf('>');
            String file = line.substring(1, end);
            byte[] bytes = new byte[file.length() / 4];
            for (int i = 0; i < bytes.length; i++) {
                bytes[i] = (byte) Integer.parseInt(file.substring(4 * i, 4 * i + 4), 16);
            }
            String real = kept(bytes);
            count++;
            if (!real.equals(line.substring(end + 2))) {
                different++;
                System.out.println("file " + file + "\n  java  " + real + "\n  kclxx " + line.substring(end + 2));
            }
        }
        System.out.println(count + " files, " + different + " read differently");
        System.exit(count > 0 && different == 0 ? 0 : 1);
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
