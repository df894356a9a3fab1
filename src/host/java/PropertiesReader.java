// SPDX-License-Identifier: Apache-2.0
package software.amazon.kinesis.multilang.config;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import java.beans.PropertyDescriptor;
import java.io.FileInputStream;
import java.io.InputStream;
import java.math.BigDecimal;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.apache.commons.beanutils.PropertyUtilsBean;
import org.slf4j.LoggerFactory;
import software.amazon.kinesis.multilang.MultiLangDaemonConfig;
import software.amazon.kinesis.retrieval.fanout.FanOutConfig;

/**
 * Reads a properties file with the daemon's own classes, and prints what it becomes: lines of KIND, KEY and TEXT, with
 * tabs between. src/host/daemon/check.cpp reads them. Nothing is asked of AWS.
 */
public final class PropertiesReader {
  private static final List<String> TRUE_OR_FALSE =
      Arrays.asList("true", "yes", "y", "on", "1", "false", "no", "n", "off", "0");

  public static void main(String[] arguments) throws Exception {
    Logger root = (Logger) LoggerFactory.getLogger(org.slf4j.Logger.ROOT_LOGGER_NAME);
    ListAppender<ILoggingEvent> log = new ListAppender<>();
    root.detachAndStopAllAppenders();
    root.setLevel(Level.WARN);
    root.addAppender(log);
    log.start();
    try {
      MultiLangDaemonConfiguration read =
          new MultiLangDaemonConfig(arguments[0]).getMultiLangDaemonConfiguration();
      Properties file = new Properties();
      try (InputStream text = new FileInputStream(arguments[0])) {
        file.load(text);
      }
      for (String key : file.stringPropertyNames()) look(read, key, file.getProperty(key).trim());
      MultiLangDaemonConfiguration.ResolvedConfiguration resolved = read.resolvedConfiguration(() -> null);
      root.detachAppender(log);
      resolved.build(); // the worker's pools and queues refuse some numbers
      Object retrieval = resolved.getRetrievalConfig().retrievalSpecificConfig();
      print("retrieval", "", retrieval instanceof FanOutConfig ? "FANOUT" : "POLLING");
    } catch (Throwable thrown) {
      StringBuilder text = new StringBuilder();
      for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
        boolean isWrapper = cause.getCause() != null
            && (cause.getMessage() == null || cause.getMessage().startsWith(cause.getCause().getClass().getName()));
        if (isWrapper) continue;
        text.append(text.length() == 0 ? "" : "; ").append(cause.getClass().getSimpleName()).append(": ")
            .append(cause.getMessage());
      }
      print("stops", "", text.toString());
    }
    for (ILoggingEvent event : log.list) print("warns", "", event.getFormattedMessage());
    print("heap", "", String.valueOf(Runtime.getRuntime().maxMemory() >> 20));
    System.exit(0); // the configuration has threads
  }

  /** Prints a number or a boolean that became something else than its text, or what counts as not set. */
  private static void look(MultiLangDaemonConfiguration read, String key, String text) throws Exception {
    if (key.matches("(kinesisClient|dynamoDbClient|cloudWatchClient)\\..*")) return;
    PropertyDescriptor found;
    try {
      found = new PropertyUtilsBean().getPropertyDescriptor(read, key);
    } catch (ReflectiveOperationException | IllegalArgumentException none) {
      found = null;
    }
    if (found == null) return; // the table of the tool has the keys
    print("knows", key, "");
    Class<?> type = found.getPropertyType();
    boolean isNumber = Number.class.isAssignableFrom(type) || (type.isPrimitive() && type != boolean.class);
    if (found.getReadMethod() == null || !(isNumber || type == boolean.class || type == Boolean.class)) return;
    Object value = new PropertyUtilsBean().getProperty(read, key);
    boolean isRead = isNumber ? value != null && isSame(text, value.toString())
        : TRUE_OR_FALSE.contains(text.toLowerCase(java.util.Locale.ROOT));
    if (!isRead) print("reads", key, String.valueOf(value));
    if (isNumber && value != null && ((Number) value).doubleValue() < 0) print("negative", key, value.toString());
    boolean isUnset = type.isPrimitive() && value != null && value.toString().matches("0(\\.0)?|false");
    if (isUnset) print("unset", key, String.valueOf(value));
  }

  private static boolean isSame(String text, String value) {
    try {
      return new BigDecimal(text).compareTo(new BigDecimal(value)) == 0;
    } catch (NumberFormatException no) {
      return false;
    }
  }

  private static void print(String kind, String key, String text) {
    System.out.println(kind + "\t" + key.replaceAll("\\s", " ") + "\t" + text.replaceAll("\\s", " "));
  }
}
