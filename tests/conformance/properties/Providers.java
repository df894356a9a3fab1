// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/** Compares "facts providers N" on stdin with the daemon's own decoder of credentials providers. */
public class Providers {
    public static void main(String[] arguments) throws Exception {
        String name = arguments[0].equals("1") ? "com.amazonaws.services.kinesis.clientlibrary.config.AWS"
                : "software.amazon.kinesis.multilang.config." + (arguments[0].equals("2") ? "AWS" : "Aws");
        Class<?> type = Class.forName(name + "CredentialsProviderPropertyValueDecoder");
        Constructor<?> constructor = type.getDeclaredConstructor();
        constructor.setAccessible(true);
        Object decoder = constructor.newInstance();
        Method decode = type.getMethod("decodeValue", String.class);
        decode.setAccessible(true);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        int accepted = 0;
        int different = 0;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] row = line.split(" ");
            String result = "accepted";
            try {
                decode.invoke(decoder, row[0]);
                accepted++;
            } catch (InvocationTargetException error) {
                result = "refused";
            }
            if (!result.equals(row[1])) {
                different++;
                System.out.println(row[0] + ": " + row[1] + " by the tool, " + result + " by the daemon");
            }
        }
        System.out.println(accepted + " accepted, " + different + " differences");
        System.exit(accepted > 0 && different == 0 ? 0 : 1);
    }
}
