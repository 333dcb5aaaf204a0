package dev.admissiongateway.worker;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonPropertyDescription;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The shapes of Java types, as Jackson reads them.
 *
 * <p>A component of a record is required if it is {@code @JsonProperty(required = true)} or
 * primitive (a missing value must not become 0); otherwise it is null if it is missing, and the
 * record's compact constructor can set a default. Unknown members are errors, unless the record is
 * {@code @JsonIgnoreProperties(ignoreUnknown = true)}. For types that are not listed below any
 * value is accepted, and Jackson decides.
 */
final class Shapes {
    private static final Map<Class<?>, Shape> PLAIN =
            Map.ofEntries(
                    Map.entry(String.class, Shape.Plain.TEXT),
                    Map.entry(boolean.class, Shape.Plain.BOOLEAN),
                    Map.entry(Boolean.class, Shape.Plain.BOOLEAN),
                    Map.entry(double.class, Shape.Plain.NUMBER),
                    Map.entry(Double.class, Shape.Plain.NUMBER),
                    Map.entry(float.class, Shape.Plain.NUMBER),
                    Map.entry(Float.class, Shape.Plain.NUMBER),
                    Map.entry(BigDecimal.class, Shape.Plain.NUMBER),
                    Map.entry(short.class, Shape.Whole.ofBits(Short.SIZE)),
                    Map.entry(Short.class, Shape.Whole.ofBits(Short.SIZE)),
                    Map.entry(int.class, Shape.Whole.ofBits(Integer.SIZE)),
                    Map.entry(Integer.class, Shape.Whole.ofBits(Integer.SIZE)),
                    Map.entry(long.class, Shape.Whole.ofBits(Long.SIZE)),
                    Map.entry(Long.class, Shape.Whole.ofBits(Long.SIZE)),
                    Map.entry(BigInteger.class, new Shape.Whole(null, null)),
                    Map.entry(ObjectNode.class, Shape.Plain.OBJECT),
                    Map.entry(ArrayNode.class, Shape.Plain.ARRAY));

    private Shapes() {}

    /** The shape of a type. */
    static Shape of(Class<?> type) {
        return of(type, Set.of());
    }

    /**
     * Like {@code of}; {@code around} are the enclosing records: a recursive record ends in any
     * object.
     */
    private static Shape of(Type type, Set<Class<?>> around) {
        Class<?> raw = rawOf(type);
        if (PLAIN.containsKey(raw)) {
            return PLAIN.get(raw);
        }
        if (raw.isEnum()) {
            return choiceOf(raw);
        }
        if (raw.isRecord()) {
            return around.contains(raw) ? Shape.Plain.OBJECT : membersOf(raw, around);
        }
        if (raw.isArray() && raw != byte[].class) {
            return new Shape.Elements(of(raw.getComponentType(), around));
        }
        if (Collection.class.isAssignableFrom(raw)) {
            return new Shape.Elements(of(argument(type, 0), around));
        }
        if (Map.class.isAssignableFrom(raw)) {
            Class<?> key = rawOf(argument(type, 0));
            return new Shape.Entries(
                    of(argument(type, 1), around), key.isEnum() ? choiceOf(key) : null);
        }
        return Shape.Plain.ANYTHING;
    }

    private static Shape membersOf(Class<?> type, Set<Class<?>> around) {
        Set<Class<?>> inside = new HashSet<>(around);
        inside.add(type);
        List<Shape.Member> members = new ArrayList<>();
        for (RecordComponent component : type.getRecordComponents()) {
            members.add(memberOf(component, inside));
        }
        JsonIgnoreProperties ignored = type.getAnnotation(JsonIgnoreProperties.class);
        return new Shape.Members(members, ignored != null && ignored.ignoreUnknown());
    }

    private static Shape.Member memberOf(RecordComponent component, Set<Class<?>> around) {
        // Annotations of a component are on its accessor: Jackson's have no target for components.
        JsonProperty property = component.getAccessor().getAnnotation(JsonProperty.class);
        JsonPropertyDescription described =
                component.getAccessor().getAnnotation(JsonPropertyDescription.class);
        String name =
                property == null || property.value().isEmpty()
                        ? component.getName()
                        : property.value();
        boolean required =
                component.getType().isPrimitive() || (property != null && property.required());
        Shape shape = of(component.getGenericType(), around);
        return new Shape.Member(name, shape, required, described == null ? "" : described.value());
    }

    private static Shape.Choice choiceOf(Class<?> type) {
        return new Shape.Choice(
                Arrays.stream(type.getEnumConstants()).map(Shapes::nameOf).toList());
    }

    private static String nameOf(Object constant) {
        return Json.MAPPER.convertValue(constant, String.class);
    }

    private static Class<?> rawOf(Type type) {
        if (type instanceof Class<?> raw) {
            return raw;
        }
        return type instanceof ParameterizedType generic
                ? rawOf(generic.getRawType())
                : Object.class;
    }

    private static Type argument(Type type, int index) {
        return type instanceof ParameterizedType generic
                        && generic.getActualTypeArguments().length > index
                ? generic.getActualTypeArguments()[index]
                : Object.class;
    }
}
