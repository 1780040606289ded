import java.util.HashMap;
import java.util.Map;

/** How far each user came in a space: things {@code gone .. made} are there. */
final class Progress {
    static final class Reached {
        int made;
        int gone;
    }

    private final Map<Integer, Reached> users = new HashMap<>();

    Reached of(int user) {
        return users.computeIfAbsent(user, number -> new Reached());
    }
}
