import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;

/**
 * Bytes that Kafka's own message classes write, one JSON object a line, in the form of tests/vectors/data; `file` says
 * in which file of them it belongs. The property `kafka` is the release. Arguments: a seed, then CLASS:VERSION for
 * bytes, or CLASS:absent for what becomes of fields that a version lacks.
 */
public class Vectors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String[] WORDS = {
        "", "x", "topic-a", "group.one_2", "null", "h\u00e9llo", "e\u0301", "a\u0000b", "\t \"quoted\" \\ /",
        "\u0433\u0440\u0443\u043f\u043f\u0430", "\u65e5\u672c\u8a9e", "\ud83d\ude00\ud83c\udf89", "\u007f\u0080\u07ff\u0800\uffff",
    };
    private static final String KAFKA = System.getProperty("kafka");
    private static Random random;

    public static void main(String[] arguments) throws Exception {
        random = new Random(Long.parseLong(arguments[0]));
        for (int at = 1; at < arguments.length; at++) {
            String[] parts = arguments[at].split(":");
            Class<?> kind = Class.forName(parts[0]);
            if (parts[1].equals("absent"))
                for (short version = lowest(kind); version <= highest(kind); version++)
                    absent(kind, version);
            else
                record(kind, Short.parseShort(parts[1]));
        }
    }

    private static void record(Class<?> kind, short version) throws Exception {
        write(kind, "default", version, fresh(kind));
        for (int number = 1; number <= 6; number++)
            write(kind, "full-" + number, version, filled(kind, version, Style.FULL));
        for (int number = 1; number <= 4; number++)
            write(kind, "nulls-" + number, version, filled(kind, version, Style.NULLS));
        for (int number = 1; number <= 4; number++)
            write(kind, "extremes-" + number, version, filled(kind, version, Style.EXTREMES));
        if (schema(kind, version).fields().length > 0 && isFlexible(schema(kind, version)))
            for (int number = 1; number <= 4; number++) {
                Message message = filled(kind, version, Style.FULL);
                for (int tag : new int[] {100, 127, 128, 16383, 2097152})
                    if (random.nextBoolean())
                        message.unknownTaggedFields().add(new RawTaggedField(tag, bytes(1 + random.nextInt(200))));
                write(kind, "tags-" + number, version, message);
            }
    }

    private enum Style { FULL, NULLS, EXTREMES }

    // --- output ------------------------------------------------------------------------------------------------------

    private static void write(Class<?> kind, String name, short version, Message message) throws Exception {
        ObjectNode line = JSON.createObjectNode().put("file", "messages").put("message", simple(kind)).put("version", version);
        line.put("case", name).put("kafka", KAFKA).put("hex", HexFormat.of().formatHex(toBytes(message, version)));
        line.set("fields", json(message, version));
        if (!message.unknownTaggedFields().isEmpty()) {
            ObjectNode struct = line.putArray("unknown_tags").addObject().put("path", "");
            for (RawTaggedField field : message.unknownTaggedFields())
                struct.withArray("tags").addObject().put("tag", field.tag()).put("hex", HexFormat.of().formatHex(field.data()));
        }
        System.out.println(ascii(line));
        if (name.matches("full-[12]") && kind.getSimpleName().matches(".*(Request|Response)Data"))
            frame(kind, "frame-" + name.substring(5), version, message);
    }

    private static void frame(Class<?> kind, String name, short version, Message body) throws Exception {
        ApiKeys api = ApiKeys.forId(((org.apache.kafka.common.protocol.ApiMessage) body).apiKey());
        boolean request = kind.getSimpleName().endsWith("RequestData");
        short headerVersion = request ? api.requestHeaderVersion(version) : api.responseHeaderVersion(version);
        Message header = request
            ? new RequestHeaderData().setRequestApiKey(api.id).setRequestApiVersion(version).setClientId("client-7").setCorrelationId(random.nextInt())
            : new ResponseHeaderData().setCorrelationId(random.nextInt());
        byte[] head = toBytes(header, headerVersion), rest = toBytes(body, version);
        ByteBuffer whole = ByteBuffer.allocate(4 + head.length + rest.length).putInt(head.length + rest.length).put(head).put(rest);
        String message = simple(kind);
        ObjectNode line = JSON.createObjectNode().put("file", "frames").put("api", message.replaceFirst("(Request|Response)$", ""));
        line.put("api_key", api.id).put("message", message).put("version", version).put("case", name).put("kafka", KAFKA);
        line.put("header_version", headerVersion);
        line.set("header", json(header, headerVersion));
        line.set("fields", json(body, version));
        System.out.println(ascii(line.put("hex", HexFormat.of().formatHex(whole.array()))));
    }

    /** Top-level fields, and those of the first struct in an array, that the version lacks. */
    private static void absent(Class<?> kind, short version) throws Exception {
        for (short other = lowest(kind); other <= highest(kind); other++)
            for (BoundField field : schema(kind, other).fields()) {
                if (field.def.type instanceof TaggedFields)
                    continue;
                Message message = fresh(kind);
                if (!has(schema(kind, version), field.def.name)) {
                    set(message, field, other, Style.FULL);
                    tell(kind, version, camel(field.def.name), message);
                } else if (element(field.def.type) instanceof Schema) {
                    for (BoundField inner : ((Schema) element(field.def.type)).fields())
                        if (!(inner.def.type instanceof TaggedFields) && !has((Schema) element(named(schema(kind, version), field.def.name).def.type), inner.def.name)) {
                            Object struct = elementClass(setter(message.getClass(), field.def.name)).getConstructor().newInstance();
                            set(struct, inner, other, Style.FULL);
                            add(message, field.def.name, struct);
                            tell(kind, version, camel(field.def.name) + "." + camel(inner.def.name), message);
                            message = fresh(kind);
                        }
                }
            }
    }

    private static void tell(Class<?> kind, short version, String field, Message message) throws Exception {
        String outcome = "dropped";
        try {
            toBytes(message, version);
        } catch (UnsupportedVersionException refused) {
            outcome = "refused";
        }
        ObjectNode line = JSON.createObjectNode().put("file", "absent_fields").put("message", simple(kind));
        System.out.println(ascii(line.put("version", version).put("field", field).put("kafka", KAFKA).put("outcome", outcome)));
    }

    private static String simple(Class<?> kind) {
        return kind.getSimpleName().replaceFirst("Data$", "");
    }

    private static byte[] toBytes(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBufferAccessor target = new ByteBufferAccessor(ByteBuffer.allocate(message.size(cache, version)));
        message.write(target, cache, version);
        return target.buffer().array();
    }

    private static JsonNode json(Message message, short version) throws Exception {
        Class<?> converter = Class.forName(message.getClass().getName() + "JsonConverter");
        return (JsonNode) converter.getMethod("write", message.getClass(), short.class).invoke(null, message, version);
    }

    private static String ascii(JsonNode line) {
        StringBuilder text = new StringBuilder();
        for (char one : line.toString().toCharArray())
            text.append(one < 0x7f ? "" + one : String.format("\\u%04x", (int) one));
        return text.toString();
    }

    // --- objects -----------------------------------------------------------------------------------------------------

    private static Message fresh(Class<?> kind) throws Exception {
        return (Message) kind.getConstructor().newInstance();
    }

    private static Message filled(Class<?> kind, short version, Style style) throws Exception {
        Message message = fresh(kind);
        for (BoundField field : schema(kind, version).fields())
            set(message, field, version, style);
        return message;
    }

    private static void set(Object target, BoundField field, short version, Style style) throws Exception {
        if (field.def.type instanceof TaggedFields) {
            for (var tagged : new TreeMap<>(fields((TaggedFields) field.def.type)).values())
                if (style == Style.FULL || random.nextBoolean())
                    put(target, tagged.name, tagged.type, version, style);
        } else {
            put(target, field.def.name, field.def.type, version, style);
        }
    }

    // Kafka 3.9 has no accessor.
    @SuppressWarnings("unchecked")
    private static Map<Integer, Field> fields(TaggedFields type) throws Exception {
        var fields = TaggedFields.class.getDeclaredField("fields");
        fields.setAccessible(true);
        return (Map<Integer, Field>) fields.get(type);
    }

    private static void put(Object target, String name, org.apache.kafka.common.protocol.types.Type type, short version, Style style) throws Exception {
        Method setter = setter(target.getClass(), name);
        if (type.isNullable() && style != Style.FULL && random.nextInt(3) > 0) {
            setter.invoke(target, new Object[] {null});
        } else if (type.isArray()) {
            int count = style == Style.FULL ? 1 + random.nextInt(3) : random.nextInt(3);
            if (count == 0 && type.isNullable() && random.nextBoolean())
                return;
            @SuppressWarnings("unchecked")
            Collection<Object> all = setter.getParameterTypes()[0] == List.class
                ? new ArrayList<>() : (Collection<Object>) setter.getParameterTypes()[0].getConstructor().newInstance();
            for (int number = 0; number < count; number++)
                all.add(one(elementClass(setter), element(type), version, style));
            setter.invoke(target, all);
        } else {
            setter.invoke(target, one(setter.getParameterTypes()[0], type, version, style));
        }
    }

    private static Object one(Class<?> kind, org.apache.kafka.common.protocol.types.Type type, short version, Style style) throws Exception {
        boolean extreme = style == Style.EXTREMES || random.nextInt(5) == 0;
        if (type instanceof Schema) {
            Object struct = kind.getConstructor().newInstance();
            for (BoundField field : ((Schema) type).fields())
                set(struct, field, version, style);
            return struct;
        }
        if (kind == boolean.class || kind == Boolean.class)
            return random.nextBoolean();
        if (kind == byte.class || kind == Byte.class)
            return extreme ? (random.nextBoolean() ? Byte.MIN_VALUE : Byte.MAX_VALUE) : (byte) random.nextInt(100);
        if (kind == short.class || kind == Short.class)
            return extreme ? (random.nextBoolean() ? Short.MIN_VALUE : Short.MAX_VALUE) : (short) random.nextInt();
        if (kind == int.class || kind == Integer.class)
            return extreme ? (random.nextBoolean() ? Integer.MIN_VALUE : Integer.MAX_VALUE) : random.nextInt(100);
        if (kind == long.class || kind == Long.class)
            return extreme ? (random.nextBoolean() ? Long.MIN_VALUE : Long.MAX_VALUE) : random.nextLong();
        if (kind == Uuid.class)
            return new Uuid(random.nextLong(), random.nextLong());
        if (kind == String.class)
            return style == Style.EXTREMES ? "\u00e9".repeat(62 + random.nextInt(3)) : WORDS[random.nextInt(WORDS.length)] + random.nextInt(1000);
        throw new IllegalArgumentException("cannot fill a " + kind);
    }

    private static byte[] bytes(int count) {
        byte[] data = new byte[count];
        random.nextBytes(data);
        return data;
    }

    // --- reflection --------------------------------------------------------------------------------------------------

    private static short lowest(Class<?> kind) throws Exception {
        return kind.getField("LOWEST_SUPPORTED_VERSION").getShort(null);
    }

    private static short highest(Class<?> kind) throws Exception {
        return kind.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
    }

    private static Schema schema(Class<?> kind, short version) throws Exception {
        return ((Schema[]) kind.getField("SCHEMAS").get(null))[version];
    }

    private static boolean isFlexible(Schema schema) {
        return schema.fields()[schema.fields().length - 1].def.type instanceof TaggedFields;
    }

    private static BoundField named(Schema schema, String name) {
        for (BoundField field : schema.fields())
            if (field.def.name.equals(name))
                return field;
        return null;
    }

    private static boolean has(Schema schema, String name) {
        return named(schema, name) != null;
    }

    private static org.apache.kafka.common.protocol.types.Type element(org.apache.kafka.common.protocol.types.Type type) {
        return type.isArray() ? ((org.apache.kafka.common.protocol.types.Type.DocumentedType) type).arrayElementType().get() : null;
    }

    private static Method setter(Class<?> kind, String name) {
        String camel = camel(name);
        String wanted = "set" + Character.toUpperCase(camel.charAt(0)) + camel.substring(1);
        for (Method method : kind.getMethods())
            if (method.getName().equals(wanted) && method.getParameterCount() == 1)
                return method;
        throw new IllegalArgumentException(kind + " has no " + wanted);
    }

    private static Class<?> elementClass(Method setter) {
        Type type = setter.getGenericParameterTypes()[0];
        if (type instanceof Class)
            type = ((Class<?>) type).getGenericSuperclass();
        return (Class<?>) ((ParameterizedType) type).getActualTypeArguments()[0];
    }

    @SuppressWarnings("unchecked")
    private static void add(Object target, String name, Object struct) throws Exception {
        ((Collection<Object>) target.getClass().getMethod(camel(name)).invoke(target)).add(struct);
    }

    private static String camel(String name) {
        StringBuilder text = new StringBuilder();
        for (String word : name.split("_"))
            text.append(text.isEmpty() ? word : Character.toUpperCase(word.charAt(0)) + word.substring(1));
        return text.toString();
    }
}
