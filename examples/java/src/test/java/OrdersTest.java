import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** One broker for all tests of a class: a process that ends with this one. */
class OrdersTest {
    static class Broker implements AutoCloseable {
        private static final Pattern LINE = Pattern.compile("listening on (\\S+:\\d+).* control port (\\d+)");
        private final Process process;
        private final Socket control;
        final String bootstrapServers;

        Broker(List<String> kbroker) throws Exception {
            List<String> command = new ArrayList<>(kbroker);
            command.addAll(List.of("serve", "--in-memory", "--port", "0", "--control-port", "0", "--with-parent"));
            process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
            String line = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
            Matcher found = LINE.matcher(line == null ? "" : line);
            if (!found.find()) {
                throw new IllegalStateException("kbroker did not start: " + line);
            }
            bootstrapServers = found.group(1);
            control = new Socket("127.0.0.1", Integer.parseInt(found.group(2)));
        }

        /** One line of JSON there, one back. */
        String control(String request) throws Exception {
            new PrintWriter(control.getOutputStream(), true).println(request);
            return new BufferedReader(new InputStreamReader(control.getInputStream())).readLine();
        }

        @Override
        public void close() throws Exception {
            control.close();
            process.destroy();
            process.waitFor();
        }
    }

    private static Broker broker;

    @BeforeAll
    static void start() throws Exception {
        broker = new Broker(List.of(System.getProperty("kbroker", "kbroker").split(" ")));
    }

    @AfterAll
    static void stop() throws Exception {
        broker.close();
    }

    @Test
    void anOrderIsReadThoughTheFirstTwoAttemptsToWriteItFail() throws Exception {
        String answer = broker.control(
                "{\"do\": \"fail\", \"api\": \"Produce\", \"error\": \"NOT_LEADER_OR_FOLLOWER\", \"times\": 2}");
        assertTrue(answer.contains("true"), answer);

        Map<String, Object> writing = Map.of("bootstrap.servers", broker.bootstrapServers);
        try (var producer = new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>("orders", "ada", "12")).get();
        }
        Map<String, Object> reading = Map.of(
                "bootstrap.servers", broker.bootstrapServers, "group.id", "billing",
                "auto.offset.reset", "earliest", "group.protocol", "consumer");
        List<String> values = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("orders"));
            while (values.isEmpty()) {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> values.add(record.value()));
            }
        }
        assertEquals(List.of("12"), values);
    }
}
