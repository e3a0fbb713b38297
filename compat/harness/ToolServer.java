import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

import org.apache.kafka.common.utils.Exit;

/**
 * Runs the main classes of Kafka's command-line tools one after the other in one JVM, because a JVM of its own
 * costs each of them a second of processor time.
 *
 * A request on standard input: the main class, the arguments, the tool's standard input. The answer on standard
 * output: exit code, standard output, standard error. Strings and byte arrays carry a four-byte length.
 *
 * The tools keep state in static fields, so their jar (the only argument) is loaded anew for every run; the
 * client library and the rest are shared. Exit and shutdown hooks are Kafka's own seams.
 */
public final class ToolServer {
    private static final class Exited extends Error {
        Exited() {
            super(null, null, false, false);
        }
    }

    /** Output that a tool writes after it has asked to exit would not exist: it caught the exit itself. */
    private final class Captured extends ByteArrayOutputStream {
        @Override
        public synchronized void write(byte[] bytes, int offset, int length) {
            if (!exiting)
                super.write(bytes, offset, length);
        }

        @Override
        public synchronized void write(int one) {
            if (!exiting)
                super.write(one);
        }
    }

    private final Captured out = new Captured();
    private final Captured err = new Captured();
    private volatile boolean exiting = false;
    private Integer exitCode;
    private final List<Runnable> hooks = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        DataInputStream requests = new DataInputStream(System.in);
        DataOutputStream answers = new DataOutputStream(System.out);
        URL[] tools = {Path.of(arguments[0]).toUri().toURL()};
        while (true) {
            String mainClass;
            try {
                mainClass = new String(readBytes(requests), StandardCharsets.UTF_8);
            } catch (EOFException end) {
                Runtime.getRuntime().halt(0);
                return;
            }
            String[] toolArguments = new String[requests.readInt()];
            for (int i = 0; i < toolArguments.length; i++)
                toolArguments[i] = new String(readBytes(requests), StandardCharsets.UTF_8);
            InputStream input = new ByteArrayInputStream(readBytes(requests));
            ToolServer run = new ToolServer();
            try (URLClassLoader loader = new URLClassLoader(tools)) {
                answers.writeInt(run.run(loader, mainClass, toolArguments, input));
            }
            writeBytes(answers, run.out.toByteArray());
            writeBytes(answers, run.err.toByteArray());
            answers.flush();
        }
    }

    private int run(ClassLoader loader, String mainClass, String[] arguments, InputStream input) {
        PrintStream outStream = new PrintStream(out, true, StandardCharsets.UTF_8);
        PrintStream errStream = new PrintStream(err, true, StandardCharsets.UTF_8);
        System.setIn(input);
        System.setOut(outStream);
        System.setErr(errStream);
        Exit.setExitProcedure((code, message) -> exit(code));
        Exit.setHaltProcedure((code, message) -> exit(code));
        Exit.setShutdownHookAdder((name, hook) -> {
            synchronized (hooks) {
                hooks.add(hook);
            }
        });
        Thread.currentThread().setContextClassLoader(loader);
        try {
            Class.forName(mainClass, true, loader).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException failed) {
            if (!(failed.getCause() instanceof Exited)) {
                failed.getCause().printStackTrace();
                recordExit(1);
            }
        } catch (ReflectiveOperationException noSuchTool) {
            noSuchTool.printStackTrace();
            recordExit(127);
        }
        exiting = false;
        List<Runnable> atExit;
        synchronized (hooks) {
            atExit = List.copyOf(hooks);
        }
        atExit.forEach(Runnable::run);
        outStream.flush();
        errStream.flush();
        return exitCode == null ? 0 : exitCode;
    }

    private void exit(int code) {
        recordExit(code);
        exiting = true;
        throw new Exited();
    }

    /** The first exit counts: a tool that catches everything may meet its own exit again. */
    private synchronized void recordExit(int code) {
        if (exitCode == null)
            exitCode = code;
    }

    private static byte[] readBytes(DataInputStream from) throws Exception {
        byte[] bytes = new byte[from.readInt()];
        from.readFully(bytes);
        return bytes;
    }

    private static void writeBytes(DataOutputStream to, byte[] bytes) throws Exception {
        to.writeInt(bytes.length);
        to.write(bytes);
    }
}
