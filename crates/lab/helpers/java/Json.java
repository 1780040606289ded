import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON as the lab writes it: what is not there is null, and what is of another kind is an error. */
final class Json {
    private final Object value;

    private Json(Object value) {
        this.value = value;
    }

    static Json parse(String text) {
        Reader reader = new Reader(text);
        Json json = reader.value();
        reader.skip();
        if (reader.at < text.length()) {
            throw reader.wrong("the end");
        }
        return json;
    }

    /** {@code text} as JSON has it. */
    static String quote(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char letter : text.toCharArray()) {
            if (letter == '"' || letter == '\\') {
                out.append('\\').append(letter);
            } else if (letter < ' ') {
                out.append(String.format("\\u%04x", (int) letter));
            } else {
                out.append(letter);
            }
        }
        return out.append('"').toString();
    }

    /** The field of this name, or null. */
    Json get(String name) {
        return fields().get(name);
    }

    /** The name of the only field. */
    String name() {
        return fields().keySet().iterator().next();
    }

    boolean isText() {
        return value instanceof String;
    }

    String text() {
        return (String) value;
    }

    long number() {
        return (Long) value;
    }

    @SuppressWarnings("unchecked")
    List<Json> items() {
        return (List<Json>) value;
    }

    String text(String name, String otherwise) {
        Json field = get(name);
        return field == null ? otherwise : field.text();
    }

    long number(String name, long otherwise) {
        Json field = get(name);
        return field == null ? otherwise : field.number();
    }

    int small(String name, int otherwise) {
        return Math.toIntExact(number(name, otherwise));
    }

    /** Whether the field is there and true. */
    boolean is(String name) {
        Json field = get(name);
        return field != null && (Boolean) field.value;
    }

    @SuppressWarnings("unchecked")
    private Map<String, Json> fields() {
        return (Map<String, Json>) value;
    }

    private static final class Reader {
        final String text;
        int at;

        Reader(String text) {
            this.text = text;
        }

        Json value() {
            skip();
            char next = peek();
            if (next == '{') {
                return new Json(object());
            }
            if (next == '[') {
                return new Json(array());
            }
            if (next == '"') {
                return new Json(string());
            }
            int end = at;
            while (end < text.length() && "+-.eE".indexOf(text.charAt(end)) >= 0
                    || end < text.length() && Character.isLetterOrDigit(text.charAt(end))) {
                end++;
            }
            String word = text.substring(at, end);
            at = end;
            return switch (word) {
                case "true" -> new Json(true);
                case "false" -> new Json(false);
                case "null" -> new Json(null);
                default -> new Json(Long.parseLong(word));
            };
        }

        private Map<String, Json> object() {
            Map<String, Json> fields = new LinkedHashMap<>();
            expect('{');
            while (!ends('}', fields.isEmpty())) {
                skip();
                String name = string();
                expect(':');
                fields.put(name, value());
            }
            return fields;
        }

        private List<Json> array() {
            List<Json> items = new ArrayList<>();
            expect('[');
            while (!ends(']', items.isEmpty())) {
                items.add(value());
            }
            return items;
        }

        /** Steps over the end, or over the comma before a further one. */
        private boolean ends(char end, boolean first) {
            skip();
            if (peek() == end) {
                at++;
                return true;
            }
            if (!first) {
                expect(',');
            }
            return false;
        }

        private String string() {
            expect('"');
            StringBuilder out = new StringBuilder();
            for (char next = peek(); next != '"'; next = peek()) {
                at++;
                if (next != '\\') {
                    out.append(next);
                    continue;
                }
                char escaped = peek();
                at++;
                switch (escaped) {
                    case 'n' -> out.append('\n');
                    case 't' -> out.append('\t');
                    case 'r' -> out.append('\r');
                    case 'b' -> out.append('\b');
                    case 'f' -> out.append('\f');
                    case 'u' -> {
                        out.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                        at += 4;
                    }
                    default -> out.append(escaped);
                }
            }
            at++;
            return out.toString();
        }

        void skip() {
            while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
                at++;
            }
        }

        private char peek() {
            if (at >= text.length()) {
                throw wrong("more");
            }
            return text.charAt(at);
        }

        private void expect(char wanted) {
            skip();
            if (peek() != wanted) {
                throw wrong("`" + wanted + "`");
            }
            at++;
        }

        IllegalArgumentException wrong(String wanted) {
            return new IllegalArgumentException("expected " + wanted + " at " + at + " of " + text);
        }
    }
}
