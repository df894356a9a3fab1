// SPDX-License-Identifier: Apache-2.0
package software.amazon.kinesis.multilang;

/**
 * The main class of `kclxx daemon run`. It runs AWS's main instead when kclxx's other classes do not load beside this daemon's.
 * So it names no class of a library here.
 */
public final class StreamsDaemon {
  /** `arguments`: pairs, as src/host/daemon/launch.cpp writes them; those of one stream are also AWS's. */
  public static void main(String[] arguments) {
    try {
      StreamWorker.startAll(arguments);
    } catch (LinkageError error) {
      boolean isOneStream = arguments.length == 4;
      System.err.println("kclxx daemon run: kclxx's classes do not load beside this daemon's, "
          + (isOneStream ? "so only AWS's run: " : "and several streams in one process need them: ") + error);
      if (!isOneStream) System.exit(1);
      MultiLangDaemon.main(arguments);
    }
  }
}
