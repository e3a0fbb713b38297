import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.StringJoiner;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.Time;

/**
 * Kafka's own record code behind standard input and output: one line asks, one line answers.
 * Bytes are hexadecimal, "." is null; a record is timestamp,key,value,header=value&...
 */
public class JavaRecords {
    static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = answer(line.split(" "));
            } catch (Exception error) {
                answer = "error " + error.getClass().getSimpleName();
            }
            System.out.println(answer);
            System.out.flush();
        }
    }

    static String answer(String[] words) {
        switch (words[0]) {
            case "build": return build(words);
            case "read": return read(MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(words[1]))));
            case "down": return down(words);
            case "marker": return marker(words);
            case "retain": return retain(words);
            default: throw new IllegalArgumentException(words[0]);
        }
    }

    /** build magic codec base-offset log-append-time|-1 producer-id epoch sequence transactional record... */
    static String build(String[] words) {
        byte magic = Byte.parseByte(words[1]);
        long appendTime = Long.parseLong(words[4]);
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(4096), magic,
            Compression.of(CompressionType.forId(Integer.parseInt(words[2]))).build(),
            appendTime < 0 ? TimestampType.CREATE_TIME : TimestampType.LOG_APPEND_TIME,
            Long.parseLong(words[3]), appendTime, Long.parseLong(words[5]), Short.parseShort(words[6]),
            Integer.parseInt(words[7]), words[8].equals("1"), RecordBatch.NO_PARTITION_LEADER_EPOCH);
        for (int i = 9; i < words.length; i++) {
            String[] parts = words[i].split(",", -1);
            builder.append(Long.parseLong(parts[0]), bytes(parts[1]), bytes(parts[2]), headers(parts[3]));
        }
        return hex(builder.build());
    }

    static String read(MemoryRecords records) {
        StringJoiner out = new StringJoiner(" ");
        for (MutableRecordBatch batch : records.batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                record.ensureValid();
                StringJoiner headers = new StringJoiner("&");
                for (Header header : record.headers())
                    headers.add(HEX.formatHex(header.key().getBytes(StandardCharsets.UTF_8)) + "="
                        + (header.value() == null ? "." : HEX.formatHex(header.value())));
                out.add(record.offset() + "," + record.timestamp() + "," + hex(record.key()) + ","
                    + hex(record.value()) + "," + headers);
            }
        }
        return out.toString();
    }

    /** down magic first-offset records */
    static String down(String[] words) {
        return hex((MemoryRecords) MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(words[3])))
            .downConvert(Byte.parseByte(words[1]), Long.parseLong(words[2]), Time.SYSTEM).records());
    }

    /** marker type offset timestamp leader-epoch producer-id producer-epoch coordinator-epoch */
    static String marker(String[] words) {
        return hex(MemoryRecords.withEndTransactionMarker(Long.parseLong(words[2]), Long.parseLong(words[3]),
            Integer.parseInt(words[4]), Long.parseLong(words[5]), Short.parseShort(words[6]),
            new EndTransactionMarker(ControlRecordType.valueOf(words[1]), Integer.parseInt(words[7]))));
    }

    /** retain now delete-retention-ms offset,offset,... records: what compaction leaves */
    static String retain(String[] words) {
        List<Long> kept = new ArrayList<>();
        for (String offset : words[3].split(","))
            if (!offset.isEmpty())
                kept.add(Long.parseLong(offset));
        MemoryRecords.RecordFilter filter =
            new MemoryRecords.RecordFilter(Long.parseLong(words[1]), Long.parseLong(words[2])) {
                @Override
                protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                    return new BatchRetentionResult(BatchRetention.RETAIN_EMPTY, false);
                }

                @Override
                protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                    return kept.contains(record.offset());
                }
            };
        ByteBuffer out = ByteBuffer.allocate(1 << 20);
        MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(words[4])))
            .filterTo(new TopicPartition("t", 0), filter, out, Integer.MAX_VALUE, BufferSupplier.NO_CACHING);
        out.flip();
        return hex(out);
    }

    static ByteBuffer bytes(String text) {
        return text.equals(".") ? null : ByteBuffer.wrap(HEX.parseHex(text));
    }

    static Header[] headers(String text) {
        List<Header> headers = new ArrayList<>();
        for (String header : text.isEmpty() ? Collections.<String>emptyList() : List.of(text.split("&"))) {
            String[] parts = header.split("=", -1);
            headers.add(new RecordHeader(ByteBuffer.wrap(HEX.parseHex(parts[0])), bytes(parts[1])));
        }
        return headers.toArray(new Header[0]);
    }

    static String hex(MemoryRecords records) {
        return hex(records.buffer());
    }

    static String hex(ByteBuffer buffer) {
        if (buffer == null)
            return ".";
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HEX.formatHex(bytes);
    }
}
