//! What people do with redis-cli: one command, a piped session, and its own reports.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ladon_conformance::{Server, locate};

struct Cli {
    program: PathBuf,
    server: Server,
}

impl Cli {
    fn new() -> Cli {
        let program = locate::must("redis-cli", locate::program("redis-cli", "redis-tools"));
        Cli { program, server: locate::must("the server", Server::subject()) }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["-p", &self.server.port().to_string()]);
        command
    }

    fn run(&self, arguments: &[&str]) -> String {
        locate::must("redis-cli", locate::run(self.command().args(arguments)))
    }

    /// A session: the lines through standard input.
    fn pipe(&self, arguments: &[&str], input: &[u8]) -> String {
        let mut child = self
            .command()
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("redis-cli");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(input).expect("redis-cli reads");
        drop(stdin);
        let output = child.wait_with_output().expect("redis-cli ends");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (said, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success() && !said.is_empty(), "{said}{errors}");
        said
    }

    /// Runs what never ends by itself, and takes what it has said by then.
    fn watch(&self, arguments: &[&str], time: Duration) -> String {
        // Line by line: what is in its buffer when it is ended is lost.
        let mut child = Command::new("stdbuf")
            .arg("-oL")
            .arg(&self.program)
            .args(["-p", &self.server.port().to_string()])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("redis-cli");
        let start = Instant::now();
        while start.elapsed() < time && child.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_millis(20));
        }
        child.kill().expect("to end it");
        let output = child.wait_with_output().expect("its output");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

#[test]
fn commands_and_sessions() {
    let cli = Cli::new();
    assert_eq!(cli.run(&["set", "k", "v"]), "OK\n");
    assert_eq!(cli.run(&["--json", "get", "k"]), "\"v\"\n");
    assert_eq!(cli.run(&["-3", "sadd", "s", "a"]), "1\n");
    assert_eq!(cli.run(&["-3", "--no-raw", "smembers", "s"]), "1~ \"a\"\n");
    assert_eq!(cli.run(&["-n", "3", "dbsize"]), "0\n");
    assert_eq!(cli.run(&["-r", "3", "incr", "n"]), "1\n2\n3\n");
    let session =
        b"set a 1\nincr a\nmulti\nincr a\nget a\nexec\nget nosuch\nbad\nselect 2\nget a\n";
    let said = cli.pipe(&["--no-raw"], session);
    let wanted = [
        "OK",
        "(integer) 2",
        "OK",
        "QUEUED",
        "QUEUED",
        "1) (integer) 3",
        "2) \"3\"",
        "(nil)",
        "(error) ERR unknown command 'bad', with args beginning with: ",
        "OK",
        "(nil)",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), wanted);
    assert!(cli.run(&["info", "server"]).contains("redis_version:"));
    assert!(cli.run(&["client", "list"]).contains("cmd=client|list"));
    assert_eq!(cli.run(&["-x", "set", "empty"]), "OK\n");
}

#[test]
fn mass_insertion() {
    let cli = Cli::new();
    let mut input = Vec::new();
    for i in 0..10_000 {
        let key = format!("key:{i}");
        input.extend_from_slice(
            format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n$1\r\nv\r\n", key.len()).as_bytes(),
        );
    }
    let said = cli.pipe(&["--pipe"], &input);
    assert!(said.contains("errors: 0, replies: 10000"), "{said}");
    assert_eq!(cli.run(&["dbsize"]), "10000\n");
    let scanned = cli.run(&["--scan", "--pattern", "key:12*"]);
    assert_eq!(scanned.lines().count(), 111);
    for i in 0..50 {
        cli.run(&["sadd", "big", &format!("member:{i}")]);
    }
    let report = cli.run(&["--bigkeys"]);
    assert!(report.contains("Biggest    set found '\"big\"' has 50 members"), "{report}");
    assert!(report.contains("Sampled 10001 keys in the keyspace!"), "{report}");
    let report = cli.run(&["--memkeys"]);
    assert!(report.contains("Sampled 10001 keys in the keyspace!"), "{report}");
    assert!(report.contains("Biggest    set found '\"big\"' has"), "{report}");
}

#[test]
fn reports_that_go_on() {
    let cli = Cli::new();
    let said = cli.watch(&["--stat", "-i", "0.1"], Duration::from_millis(700));
    assert!(said.lines().count() > 3, "{said}");
    assert!(said.contains("clients"), "{said}");
    let said = cli.run(&["--raw", "-i", "1", "--latency"]);
    assert!(said.split_whitespace().count() >= 4, "{said}");
    let said = cli.watch(&["--latency-history", "-i", "1"], Duration::from_millis(1500));
    let last = said.lines().last().unwrap_or_default();
    assert_eq!(last.split_whitespace().count(), 4, "min, max, average, samples: {said}");
    let monitor = std::thread::scope(|scope| {
        let monitor = scope.spawn(|| cli.watch(&["monitor"], Duration::from_millis(1500)));
        std::thread::sleep(Duration::from_millis(700));
        cli.run(&["set", "seen", "yes"]);
        monitor.join().expect("no panic")
    });
    assert!(monitor.contains("\"set\" \"seen\" \"yes\""), "{monitor}");
}
