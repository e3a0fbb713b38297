import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Java's transactional producer and its consumer, driven by lines on standard input; each gets one line back. */
public class TransactionalClient {
    private static KafkaProducer<String, String> producer;

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String answer;
            try {
                answer = "ok " + execute(arguments[0], line.split(" "));
            } catch (Exception error) {
                Throwable cause = error.getCause() == null ? error : error.getCause();
                answer = "error " + cause.getClass().getSimpleName() + " " + cause.getMessage();
            }
            System.out.println(answer.replace('\n', ' '));
            System.out.flush();
        }
        if (producer != null) producer.close(Duration.ZERO);
    }

    private static String execute(String bootstrap, String[] words) throws Exception {
        switch (words[0]) {
            case "init":
                Map<String, Object> settings = new HashMap<>();
                settings.put("bootstrap.servers", bootstrap);
                settings.put("transactional.id", words[1]);
                settings.put("transaction.timeout.ms", Integer.parseInt(words[2]));
                producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
                producer.initTransactions();
                return "";
            case "begin":
                producer.beginTransaction();
                return "";
            case "send":
                producer.send(new ProducerRecord<>(words[1], Integer.parseInt(words[2]), null, words[3])).get();
                return "";
            case "offset":
                producer.sendOffsetsToTransaction(
                    Map.of(
                        new TopicPartition(words[2], Integer.parseInt(words[3])),
                        new OffsetAndMetadata(Long.parseLong(words[4]))),
                    new ConsumerGroupMetadata(words[1]));
                return "";
            case "commit":
                producer.commitTransaction();
                return "";
            case "abort":
                producer.abortTransaction();
                return "";
            case "read":
                return read(bootstrap, words[1], Integer.parseInt(words[2]), words[3]);
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    /** All values of a topic's partitions, up to where this isolation level may read. */
    private static String read(String bootstrap, String topic, int partitions, String isolation) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("isolation.level", isolation);
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> assigned = new ArrayList<>();
            for (int number = 0; number < partitions; number++) assigned.add(new TopicPartition(topic, number));
            consumer.assign(assigned);
            consumer.seekToBeginning(assigned);
            Map<TopicPartition, Long> ends = consumer.endOffsets(assigned);
            while (assigned.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
                consumer.poll(Duration.ofMillis(100)).forEach(record -> values.add(record.value()));
            }
        }
        return String.join(" ", values);
    }
}
