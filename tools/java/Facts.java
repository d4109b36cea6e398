import java.io.File;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.InvalidMetadataException;
import org.apache.kafka.common.errors.RefreshRetriableException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.CompactArrayOf;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

/**
 * What the jars on the classpath say of their messages, error codes and consumer settings, as tab-separated lines.
 * The arguments are the messages to tell of; without any it tells of all.
 */
public class Facts {
    private static final String GENERATED = "org/apache/kafka/(common/message|coordinator/[a-z]+/generated)/\\w+\\.class";

    public static void main(String[] arguments) throws Exception {
        Set<String> wanted = new HashSet<>(List.of(arguments));
        for (var found : messages().entrySet())
            if (wanted.isEmpty() || wanted.contains(found.getKey()))
                print(found.getKey(), found.getValue());
        for (Errors error : Errors.values()) {
            ApiException kind = error.exception();
            String kinds = (kind instanceof RetriableException) + "\t" + (kind instanceof InvalidMetadataException)
                + "\t" + (kind instanceof RefreshRetriableException);
            System.out.println(String.join("\t", "error", "" + error.code(), error.name(), kinds));
        }
        for (ConfigDef.ConfigKey key : new TreeMap<>(ConsumerConfig.configDef().configKeys()).values()) {
            String fallback = key.hasDefault() ? "" + key.defaultValue : "required";
            System.out.println(String.join("\t", "setting", key.name, "" + key.type, fallback));
        }
    }

    private static void print(String name, Class<?> message) throws Exception {
        Schema[] schemas = (Schema[]) message.getField("SCHEMAS").get(null);
        short highest = message.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
        for (int version = message.getField("LOWEST_SUPPORTED_VERSION").getShort(null); version <= highest; version++)
            System.out.println(String.join("\t", "message", name, "" + version, layout(schemas[version])));
    }

    private static TreeMap<String, Class<?>> messages() throws Exception {
        TreeMap<String, Class<?>> found = new TreeMap<>();
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!path.endsWith(".jar"))
                continue;
            try (JarFile jar = new JarFile(path)) {
                for (JarEntry entry : Collections.list(jar.entries())) {
                    String file = entry.getName();
                    if (!file.matches(GENERATED))
                        continue;
                    Class<?> one = Class.forName(file.substring(0, file.length() - ".class".length()).replace('/', '.'));
                    if (List.of(one.getInterfaces()).stream().anyMatch(face -> face.getSimpleName().endsWith("Message")))
                        found.put(one.getSimpleName().replaceFirst("Data$", ""), one);
                }
            }
        }
        return found;
    }

    private static String layout(Schema schema) {
        StringJoiner fields = new StringJoiner(" ", "{", "}");
        for (BoundField field : schema.fields())
            fields.add(field.def.name + ":" + type(field.def.type));
        return fields.toString();
    }

    private static String type(Type type) {
        if (type instanceof TaggedFields) {
            StringJoiner fields = new StringJoiner(" ", "<", ">");
            ((TaggedFields) type).fields().forEach((tag, field) -> fields.add(tag + "=" + field.name + ":" + type(field.type)));
            return fields.toString();
        }
        String name = type instanceof Schema ? layout((Schema) type) : ((Type.DocumentedType) type).typeName();
        if (type.isArray()) {
            name = "[" + type(((Type.DocumentedType) type).arrayElementType().get()) + "]";
            if (type instanceof CompactArrayOf)
                name = "COMPACT" + name;
        }
        return type.isNullable() ? name + "?" : name;
    }
}
