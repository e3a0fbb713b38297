import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Java's share consumers by their names, driven by lines on standard input; each gets one line back. */
public class ShareClient {
    private static final Map<String, Member> members = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String answer;
            try {
                answer = "ok " + execute(line.split(" "));
            } catch (Exception error) {
                answer = "error " + error.getClass().getSimpleName() + " " + error.getMessage();
            }
            System.out.println(answer.replace('\n', ' '));
            System.out.flush();
        }
        System.exit(0);
    }

    private static String execute(String[] words) {
        if (words[0].equals("open")) {
            members.put(words[1], new Member(words));
            return "";
        }
        Member member = members.get(words[1]);
        switch (words[0]) {
            case "poll":
                return member.poll(Long.parseLong(words[2]));
            case "acknowledge":
                member.acknowledge(Long.parseLong(words[2]), AcknowledgeType.valueOf(words[3]));
                return "";
            case "commit":
                return member.commit();
            case "commit_later":
                member.consumer.commitAsync();
                return "";
            case "callbacks":
                return member.callbacks();
            case "lock_timeout":
                return member.consumer.acquisitionLockTimeoutMs().map(String::valueOf).orElse("none");
            case "close":
                members.remove(words[1]).consumer.close(Duration.ofSeconds(20));
                return "";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static String name(Throwable error) {
        return error == null ? "done" : error.getClass().getSimpleName();
    }

    private static class Member {
        final KafkaShareConsumer<String, String> consumer;
        private final Map<Long, ConsumerRecord<String, String>> held = new TreeMap<>();
        private final Map<String, Set<Long>> told = new LinkedHashMap<>();

        /** open NAME TOPIC SETTING=VALUE... */
        Member(String[] words) {
            Map<String, Object> settings = new HashMap<>();
            for (int index = 3; index < words.length; index++) {
                String[] setting = words[index].split("=", 2);
                settings.put(setting[0], setting[1]);
            }
            consumer = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
            consumer.setAcknowledgementCommitCallback(this::committed);
            consumer.subscribe(List.of(words[2]));
        }

        private void committed(Map<TopicIdPartition, Set<Long>> offsets, Exception error) {
            Set<Long> all = told.computeIfAbsent(name(error), ignored -> new TreeSet<>());
            offsets.values().forEach(all::addAll);
        }

        /** OFFSET:VALUE:DELIVERY_COUNT of each record. */
        String poll(long milliseconds) {
            List<String> found = new ArrayList<>();
            for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(milliseconds))) {
                held.put(each.offset(), each);
                String count = each.deliveryCount().map(String::valueOf).orElse("none");
                found.add(each.offset() + ":" + each.value() + ":" + count);
            }
            return String.join(" ", found);
        }

        void acknowledge(long offset, AcknowledgeType type) {
            consumer.acknowledge(held.get(offset), type);
        }

        String commit() {
            List<String> results = new ArrayList<>();
            Map<TopicIdPartition, Optional<KafkaException>> committed = consumer.commitSync(Duration.ofSeconds(20));
            committed.forEach((each, error) -> results.add(each.partition() + ":" + name(error.orElse(null))));
            return String.join(" ", results);
        }

        /** RESULT:OFFSET,OFFSET... since it was asked last. */
        String callbacks() {
            List<String> results = new ArrayList<>();
            told.forEach((result, offsets) -> results.add(
                result + ":" + String.join(",", offsets.stream().map(String::valueOf).toList())));
            told.clear();
            return String.join(" ", results);
        }
    }
}
