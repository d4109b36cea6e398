import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Asks Kafka's own assignors. Each line on standard input is one group as JSON, in the form of
 * tests/group/data/assignors.jsonl.gz; each line on standard output is its assignment, or what was thrown.
 * tools/compare_assignors.py runs it.
 */
public class Assignors {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
        out.flush();
    }

    private static ObjectNode answer(JsonNode group) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            ConsumerPartitionAssignor assignor = assignor(group.get("assignor").asText());
            Map<String, ConsumerPartitionAssignor.Assignment> plan =
                assignor.assign(cluster(group), new GroupSubscription(subscriptions(group))).groupAssignment();
            ObjectNode given = answer.putObject("assignment");
            plan.forEach((member, assignment) -> {
                ArrayNode partitions = given.putArray(member);
                assignment.partitions().forEach(each -> partitions.addArray().add(each.topic()).add(each.partition()));
            });
        } catch (RuntimeException error) {
            answer.put("raises", error.toString());
        }
        return answer;
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException(name);
        };
    }

    private static Cluster cluster(JsonNode group) {
        Map<Integer, Node> nodes = new HashMap<>();
        group.get("nodes").fields().forEachRemaining(entry -> {
            int id = Integer.parseInt(entry.getKey());
            nodes.put(id, new Node(id, "localhost", 9092, text(entry.getValue())));
        });
        List<PartitionInfo> partitions = new ArrayList<>();
        group.get("topics").fields().forEachRemaining(topic -> {
            for (int number = 0; number < topic.getValue().size(); number++) {
                List<Node> replicas = new ArrayList<>();
                topic.getValue().get(number).forEach(id -> replicas.add(nodes.get(id.asInt())));
                Node[] all = replicas.toArray(new Node[0]);
                Node leader = all.length > 0 ? all[0] : null;
                partitions.add(new PartitionInfo(topic.getKey(), number, leader, all, all));
            }
        });
        return new Cluster("cluster", nodes.values(), partitions, Set.of(), Set.of());
    }

    private static Map<String, Subscription> subscriptions(JsonNode group) {
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (JsonNode member : group.get("members")) {
            List<String> topics = new ArrayList<>();
            member.get("topics").forEach(topic -> topics.add(topic.asText()));
            List<TopicPartition> owned = new ArrayList<>();
            member.get("owned_partitions").forEach(
                each -> owned.add(new TopicPartition(each.get(0).asText(), each.get(1).asInt())));
            String data = text(member.get("user_data"));
            ByteBuffer userData = data == null ? null : ByteBuffer.wrap(HexFormat.of().parseHex(data));
            Subscription subscription = new Subscription(
                topics, userData, owned, member.get("generation").asInt(), Optional.ofNullable(text(member.get("rack"))));
            subscription.setGroupInstanceId(Optional.ofNullable(text(member.get("group_instance_id"))));
            subscriptions.put(member.get("member_id").asText(), subscription);
        }
        return subscriptions;
    }

    private static String text(JsonNode value) {
        return value.isNull() ? null : value.asText();
    }
}
