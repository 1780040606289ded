//! Changes of many rows in slices: they do what they do in one go, whatever the slices are.

use ladon_testkit::Random;

use crate::memory::Memory;

const ROWS: u64 = 60;
const STATEMENTS: usize = 12;
const SEEDS: u64 = 60;

const TABLES: [&str; 2] = [
    "CREATE TABLE t (id INT PRIMARY KEY, n INT, u INT UNIQUE)",
    "CREATE TABLE log (id INT PRIMARY KEY, n INT)",
];
const TRIGGERS: [&str; 4] = [
    "CREATE TRIGGER a AFTER UPDATE ON t FOR EACH ROW BEGIN \
     INSERT INTO log SELECT count(*), new.n FROM log; END",
    "CREATE TRIGGER b BEFORE DELETE ON t FOR EACH ROW WHEN old.n > 2 BEGIN \
     UPDATE log SET n = n + 1 WHERE id < 3; DELETE FROM log WHERE n = old.n; END",
    "CREATE TRIGGER c AFTER INSERT ON t FOR EACH ROW BEGIN \
     INSERT OR REPLACE INTO log VALUES (new.id % 7, new.n); END",
    "CREATE TRIGGER d BEFORE UPDATE ON t FOR EACH ROW WHEN new.n = 3 BEGIN \
     SELECT RAISE(IGNORE); END",
];

fn statement(random: &mut Random) -> String {
    let [a, b] = [2 + random.below(4), random.below(3)];
    let or = random.pick(&["", "", " OR IGNORE", " OR REPLACE", " OR FAIL"]);
    match random.below(6) {
        0 => format!("UPDATE{or} t SET n = n + 1 WHERE id % {a} = {b}"),
        1 => format!("UPDATE{or} t SET u = u + {a} WHERE n % 3 = {b}"),
        2 => format!("DELETE FROM t WHERE id % {} = {b}", a + 3),
        3 => format!("INSERT{or} INTO t SELECT id + {}, {b}, u + {} FROM t", 25 * a, 30 * a),
        4 => format!("UPDATE{or} t SET n = (SELECT count(*) FROM log) % 5 WHERE id > {}", 10 * b),
        _ => format!("INSERT{or} INTO log SELECT id + {}, n FROM t", 10 * b),
    }
}

/// What a seed's statements answer and leave behind, the first `turn` steps long; and how many
/// turns ended within a statement.
fn run(seed: u64, turn: Option<u64>, lost_row_canary: bool) -> (Vec<String>, u64) {
    let mut random = Random::new(seed);
    let mut memory = Memory::default();
    let mut said = Vec::new();
    for text in TABLES {
        assert_eq!(memory.run(text), "defined", "{text}");
    }
    for id in 0..ROWS {
        let row = format!("INSERT INTO t VALUES ({id}, {}, {})", id % 5, id * 2);
        assert_eq!(memory.run(&row), "changed 1");
    }
    for text in TRIGGERS {
        if random.chance(1, 3) {
            assert_eq!(memory.run(text), "defined", "{text}");
        }
    }
    (memory.turn, memory.lost_row_canary) = (turn, lost_row_canary);
    for _ in 0..STATEMENTS {
        let text = statement(&mut random);
        said.push(format!("{text}: {}", memory.run(&text)));
        said.push(memory.run("SELECT * FROM t"));
        said.push(memory.run("SELECT * FROM log"));
    }
    (said, memory.turns)
}

/// The first seed whose statements differ in slices of some length.
fn first_different(lost_row_canary: bool) -> Option<String> {
    let mut turns = 0;
    for seed in 0..SEEDS {
        let (whole, _) = run(seed, None, false);
        for turn in [1, 300, 2000] {
            let (sliced, more) = run(seed, Some(turn), lost_row_canary);
            turns += more;
            if let Some((one, other)) = whole.iter().zip(&sliced).find(|(a, b)| a != b) {
                return Some(format!("seed {seed}, slices of {turn}:\n{one}\n{other}"));
            }
        }
    }
    assert!(turns > 10_000, "hardly anything ran in slices: {turns}");
    None
}

#[test]
fn slices_do_what_one_go_does() {
    assert_eq!(first_different(false), None);
}

/// What the test above is worth: a row that is lost between two slices.
#[test]
fn a_row_that_is_lost_between_slices_is_seen() {
    assert!(first_different(true).is_some());
}
