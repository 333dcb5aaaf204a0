package dev.admissiongateway.worker;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.math.BigInteger;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/**
 * The form of the JSON for a Java type: its JSON Schema, and all errors in a value, each with its
 * JSON Pointer.
 *
 * <p>Jackson stops at the first error; an operator needs all of them. So a value is first compared
 * with its shape, and Jackson converts it only if there is no error. Jackson reports the errors
 * that only it can find (of a custom deserializer, of a record's constructor).
 */
sealed interface Shape {
    /** The schema of a value; the caller may add a description. */
    ObjectNode schema();

    /**
     * Finds errors.
     *
     * @param value a JSON value, never null
     * @param place the JSON Pointer of the value
     * @param found receives errors and warnings
     */
    void check(JsonNode value, String place, List<Finding> found);

    private static ObjectNode ofType(String type) {
        ObjectNode schema = JsonNodeFactory.instance.objectNode();
        return type.isEmpty() ? schema : schema.put("type", type);
    }

    private static void refuse(String wanted, JsonNode value, String place, List<Finding> found) {
        found.add(new SettingsError(place, "must be " + wanted + ", is " + Json.typeOf(value)));
    }

    /** A string, a number, a boolean, any object, any array, or any value that Jackson reads. */
    enum Plain implements Shape {
        TEXT("string", "a text"),
        NUMBER("number", "a number"),
        BOOLEAN("boolean", "a boolean"),
        OBJECT("object", "an object"),
        ARRAY("array", "an array"),
        ANYTHING("", "anything");

        private final String type;
        private final String words;

        Plain(String type, String words) {
            this.type = type;
            this.words = words;
        }

        @Override
        public ObjectNode schema() {
            return ofType(type);
        }

        @Override
        public void check(JsonNode value, String place, List<Finding> found) {
            boolean fits =
                    switch (this) {
                        case TEXT -> value.isTextual();
                        case NUMBER -> value.isNumber();
                        case BOOLEAN -> value.isBoolean();
                        case OBJECT -> value.isObject();
                        case ARRAY -> value.isArray();
                        case ANYTHING -> true;
                    };
            if (!fits) {
                refuse(words, value, place, found);
            }
        }
    }

    /** An integer within bounds; null: no bound. */
    record Whole(BigInteger least, BigInteger most) implements Shape {
        /** The range of an integer of this many bits, in two's complement. */
        static Whole ofBits(int bits) {
            BigInteger half = BigInteger.ONE.shiftLeft(bits - 1);
            return new Whole(half.negate(), half.subtract(BigInteger.ONE));
        }

        @Override
        public ObjectNode schema() {
            return ofType("integer");
        }

        @Override
        public void check(JsonNode value, String place, List<Finding> found) {
            if (!value.isIntegralNumber()) {
                refuse("a whole number", value, place, found);
            } else if (least != null && (isBelow(value.bigIntegerValue()))) {
                found.add(
                        new SettingsError(
                                place,
                                "must be from "
                                        + least
                                        + " to "
                                        + most
                                        + ", is "
                                        + value.asText()));
            }
        }

        private boolean isBelow(BigInteger value) {
            return value.compareTo(least) < 0 || value.compareTo(most) > 0;
        }
    }

    /** A constant of an enum, by its name in Jackson. */
    record Choice(List<String> names) implements Shape {
        @Override
        public ObjectNode schema() {
            ObjectNode schema = ofType("string");
            names.forEach(schema.putArray("enum")::add);
            return schema;
        }

        @Override
        public void check(JsonNode value, String place, List<Finding> found) {
            if (!value.isTextual()) {
                refuse("a text", value, place, found);
            } else if (!names.contains(value.textValue())) {
                String known = names.stream().map(Json::quoted).collect(Collectors.joining(", "));
                found.add(
                        new SettingsError(
                                place, "must be one of " + known + ", is " + Json.quoted(value)));
            }
        }
    }

    /** An array whose elements have one shape. */
    record Elements(Shape element) implements Shape {
        @Override
        public ObjectNode schema() {
            ObjectNode schema = ofType("array");
            schema.set("items", element.schema());
            return schema;
        }

        @Override
        public void check(JsonNode value, String place, List<Finding> found) {
            if (!value.isArray()) {
                refuse("an array", value, place, found);
                return;
            }
            for (int index = 0; index < value.size(); index++) {
                element.check(value.get(index), place + Pointers.pointer(index), found);
            }
        }
    }

    /** An object with any names, whose members have one shape. */
    record Entries(Shape value, Choice keys) implements Shape {
        @Override
        public ObjectNode schema() {
            ObjectNode schema = ofType("object");
            schema.set("additionalProperties", value.schema());
            if (keys != null) {
                schema.set("propertyNames", keys.schema());
            }
            return schema;
        }

        @Override
        public void check(JsonNode map, String place, List<Finding> found) {
            if (!map.isObject()) {
                refuse("an object", map, place, found);
                return;
            }
            map.properties()
                    .forEach(
                            entry -> {
                                String below = place + Pointers.pointer(entry.getKey());
                                if (keys != null) {
                                    keys.check(
                                            JsonNodeFactory.instance.textNode(entry.getKey()),
                                            below,
                                            found);
                                }
                                value.check(entry.getValue(), below, found);
                            });
        }
    }

    /** A member of a record. */
    record Member(String name, Shape shape, boolean required, String description) {
        ObjectNode schema() {
            ObjectNode schema = shape.schema();
            return description.isEmpty() ? schema : schema.put("description", description);
        }
    }

    /**
     * An object with these members; annotations of the record determine whether others are ignored.
     */
    record Members(List<Member> members, boolean ignoresUnknown) implements Shape {
        @Override
        public ObjectNode schema() {
            ObjectNode schema = ofType("object");
            ObjectNode properties = schema.putObject("properties");
            members.forEach(member -> properties.set(member.name(), member.schema()));
            List<String> required =
                    members.stream().filter(Member::required).map(Member::name).toList();
            if (!required.isEmpty()) {
                required.forEach(schema.putArray("required")::add);
            }
            return ignoresUnknown ? schema : schema.put("additionalProperties", false);
        }

        @Override
        public void check(JsonNode value, String place, List<Finding> found) {
            if (!value.isObject()) {
                refuse("an object", value, place, found);
                return;
            }
            for (Member member : members) {
                JsonNode part = value.get(member.name());
                String below = place + Pointers.pointer(member.name());
                if (part != null && !(part.isNull() && !member.required())) {
                    member.shape().check(part, below, found);
                } else if (part == null && member.required()) {
                    found.add(new SettingsError(below, "Required value"));
                }
            }
            value.fieldNames().forEachRemaining(name -> checkName(name, place, found));
        }

        private void checkName(String name, String place, List<Finding> found) {
            if (members.stream().anyMatch(member -> member.name().equals(name))) {
                return;
            }
            String below = place + Pointers.pointer(name);
            if (ignoresUnknown) {
                found.add(
                        new SettingsWarning(
                                below + " is no member of these settings and is ignored"));
                return;
            }
            String[] known = members.stream().map(Member::name).sorted().toArray(String[]::new);
            String names = known.length == 0 ? "none" : String.join(", ", Arrays.asList(known));
            found.add(new SettingsError(below, "Unknown member; known are: " + names));
        }
    }
}
