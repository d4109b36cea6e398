import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/**
 * What the Java consumer of a release reads from partition 0 of some topics: one line for each record with topic,
 * offset, timestamp, its type, key and value. Run as a source file, with that release's jars on the classpath, up to
 * 3.x, by {@code java -cp JARS Reader.java BOOTSTRAP TOPIC…}. It ends when nothing new has come for a second.
 */
public class Reader {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        List<TopicPartition> partitions = List.of(arguments).stream().skip(1)
            .map(topic -> new TopicPartition(topic, 0)).collect(Collectors.toList());
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.assign(partitions);
            int empty = 0;
            while (empty < 10) {
                var records = consumer.poll(100);
                empty = records.isEmpty() ? empty + 1 : 0;
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    System.out.println(String.join("\t", record.topic(), Long.toString(record.offset()),
                        Long.toString(record.timestamp()), record.timestampType().name(),
                        text(record.key()), text(record.value())));
                }
            }
        }
    }

    private static String text(byte[] data) {
        return data == null ? "null" : "=" + Base64.getEncoder().encodeToString(data);
    }
}
