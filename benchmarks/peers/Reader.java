import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/** Read a topic from the beginning with Java's consumer: `Reader SERVERS TOPIC PARTITIONS RECORDS`. */
public class Reader {
    static final String BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer";

    public static void main(String[] arguments) {
        OperatingSystemMXBean process = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long began = System.nanoTime();
        long used = process.getProcessCpuTime();
        long count = read(arguments[0], arguments[1], Integer.parseInt(arguments[2]), Long.parseLong(arguments[3]));
        double seconds = (System.nanoTime() - began) / 1e9;
        System.out.println(count + " " + seconds + " " + (process.getProcessCpuTime() - used) / 1e9);
    }

    static long read(String servers, String topic, int partitions, long wanted) {
        List<TopicPartition> all = new ArrayList<>();
        for (int number = 0; number < partitions; number++) {
            all.add(new TopicPartition(topic, number));
        }
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", servers, "key.deserializer", BYTES, "value.deserializer", BYTES);
        long count = 0;
        long bytes = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.assign(all);
            consumer.seekToBeginning(all);
            while (count < wanted) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                    count++;
                    bytes += record.value().length;
                }
            }
        }
        if (bytes != 100 * count) {
            throw new IllegalStateException("a record is not what was written");
        }
        return count;
    }
}
