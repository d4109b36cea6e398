import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;

/** Reads ten records, three a poll, commits, and prints every metric of the consumer: group, name, tags, value. */
public class ConsumerMetricsTable {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        Properties keys = new Properties();
        keys.put("bootstrap.servers", arguments[0]);
        keys.put("group.id", "table");
        keys.put("client.id", "table");
        keys.put("group.protocol", "classic");
        keys.put("auto.offset.reset", "earliest");
        keys.put("enable.auto.commit", "false");
        keys.put("max.poll.records", "3");
        String bytes = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
        keys.put("key.deserializer", bytes);
        keys.put("value.deserializer", bytes);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(keys)) {
            consumer.subscribe(List.of(topic));
            for (int count = 0, polls = 0; count < 10 && polls < 60; polls++)
                count += consumer.poll(Duration.ofMillis(500)).count();
            consumer.commitSync();
            for (Map.Entry<MetricName, ? extends Metric> entry : consumer.metrics().entrySet()) {
                MetricName name = entry.getKey();
                StringBuilder tags = new StringBuilder();
                for (Map.Entry<String, String> tag : new TreeMap<>(name.tags()).entrySet())
                    tags.append(tags.length() == 0 ? "" : ",").append(tag.getKey()).append('=').append(tag.getValue());
                Object value = entry.getValue().metricValue();
                System.out.println(String.join("\t", name.group(), name.name(), tags, String.valueOf(value)));
            }
        }
    }
}
