//! The command line of `ladon tarantool`, the console of a program, and `ladon console`, which reaches
//! it from elsewhere.

use ladon_testkit::Ports;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const LADON: &str = env!("CARGO_BIN_EXE_ladon");

/// Runs a command to its end, with this as its standard input.
fn with_input(command: &mut Command, input: &str) -> Output {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("takes its input");
    child.wait_with_output().expect("ends")
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn tarantool(words: &[&str], input: &str) -> Output {
    with_input(Command::new(LADON).arg("tarantool").args(words), input)
}

#[test]
fn the_command_line_is_that_of_tarantool() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("a.lua");
    std::fs::write(&file, "print(x, arg[0]:match('[^/]*$'), ...)").expect("a program");
    let file = file.to_str().expect("a text");
    let ran = tarantool(&["-e", "x = 1", "-e", "x = x + 1", "-l", "fio", file, "-e", "b"], "");
    assert_eq!(printed(&ran), "2\ta.lua\t-e\tb\n");
    assert_eq!(printed(&tarantool(&["-", "a"], "print(3, ...)")), "3\ta\n");
    assert_eq!(printed(&tarantool(&[], "print(4)")), "4\n");
    assert!(printed(&tarantool(&["--version"], "")).starts_with("Tarantool 2."));
    let refused = tarantool(&["-x"], "");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("invalid option -- 'x'"));
    assert_eq!(refused.status.code(), Some(2));
    for words in [&["-e", "error('why')"][..], &["-l", "nosuch"]] {
        let failed = tarantool(words, "");
        assert_eq!(failed.status.code(), Some(1), "{words:?}");
        assert!(String::from_utf8_lossy(&failed.stderr).contains("LuajitError"), "{words:?}");
    }
}

#[test]
fn a_program_of_that_name_is_tarantool() {
    let dir = tempfile::tempdir().expect("a directory");
    let name = dir.path().join("tarantool");
    symlink(LADON, &name).expect("a link");
    let ran = Command::new(&name).args(["-e", "print('--help')"]).output().expect("runs");
    assert_eq!(printed(&ran), "--help\n");
    let help = Command::new(&name).arg("--help").output().expect("runs");
    assert!(printed(&help).starts_with("Usage: tarantool"), "{}", printed(&help));
}

#[test]
fn a_console_follows_the_program() {
    let typed = "1 + 1\nfor i = 1, 2 do\nx = i\nend\nx\nbox.session.type()\nerror({})\n\\quit\nx\n";
    let ran = tarantool(&["-i", "-e", "y = 1"], typed);
    let printed = printed(&ran);
    let answers: Vec<&str> = printed.split("---\n").skip(1).collect();
    assert_eq!(answers[..4], ["- 2\n...\n\n", "...\n\n", "- 2\n...\n\n", "- repl\n...\n\n"]);
    assert!(answers[4].starts_with("- error: "), "{printed}");
    assert_eq!(answers.len(), 6, "nothing runs after \\quit: {printed}");
    assert_eq!(ran.status.code(), Some(0));
}

/// A program that listens with a console at `c.sock`, and at a port.
struct Listens {
    child: Child,
    dir: tempfile::TempDir,
    ports: Ports,
}

impl Listens {
    fn start() -> Listens {
        let dir = tempfile::tempdir().expect("a directory");
        let ports = Ports::take(1).expect("a port");
        let program = format!(
            "box.cfg{{listen = '127.0.0.1:{}', memtx_memory = 0.1 * 1024^3, log_level = 2}}
             box.schema.user.passwd('admin', 'secret')
             function a_long_name() end
             require('console').listen('unix/:c.sock')",
            ports.first()
        );
        let file = dir.path().join("init.lua");
        std::fs::write(&file, program).expect("a program");
        let mut command = Command::new(LADON);
        let child = command.arg("tarantool").arg(&file).current_dir(dir.path()).spawn();
        let listens = Listens { child: child.expect("starts"), dir, ports };
        let begun = Instant::now();
        while !listens.socket().exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "no console");
            std::thread::sleep(Duration::from_millis(20));
        }
        listens
    }

    fn socket(&self) -> std::path::PathBuf {
        self.dir.path().join("c.sock")
    }

    fn console(&self, address: &str, typed: &str) -> Output {
        let mut command = Command::new(LADON);
        command.arg("console").arg(address).env("LADON_IPROTO_PASSWORD", "secret");
        with_input(&mut command, typed)
    }
}

impl Drop for Listens {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_console_is_reached_by_its_socket_and_over_iproto() {
    let program = Listens::start();
    let socket = program.socket();
    let port = format!("127.0.0.1:{}", program.ports.first());
    let typed = "1 + 1\nfor i = 1, 2 do\nx = i\nend\nx\n\"...\"\n\\set output lua\n\
                 {a = 1, b = ';'}\n\\set output yaml\n2, 3\nerror('why', 0)\n";
    for address in [socket.to_str().expect("a text"), &port] {
        let ran = program.console(address, typed);
        let expected = "---\n- 2\n...\n---\n...\n---\n- 2\n...\n---\n- '...'\n...\ntrue;\n\
                        {a = 1, b = \";\"};\n---\n- true\n...\n---\n- 2\n- 3\n...\n\
                        ---\n- error: why\n...\n";
        assert_eq!(printed(&ran), expected, "{address}");
        assert_eq!(ran.status.code(), Some(0));
    }
    // What is pushed comes before the answer.
    let ran = program.console(socket.to_str().expect("a text"), "box.session.push(5)\n6\n");
    assert_eq!(
        printed(&ran),
        "%TAG !push! tag:tarantool.io/push,2018\n--- 5\n...\n---\n- true\n...\n---\n- 6\n...\n"
    );
}

#[test]
fn iproto_is_reached_by_a_unix_socket_as_well() {
    let program = Listens::start();
    let socket = program.dir.path().join("i.sock");
    let typed = format!("box.cfg{{listen = '{}'}}\n", socket.display());
    program.console(program.socket().to_str().expect("a text"), &typed);
    let ran = program.console(socket.to_str().expect("a text"), "box.session.user()\n");
    assert_eq!(printed(&ran), "---\n- admin\n...\n", "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn who_is_no_console_is_refused_by_name() {
    let nobody = Command::new(LADON).args(["console", "127.0.0.1:1"]).output().expect("runs");
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("nothing listens at 127.0.0.1:1"));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let stranger = std::thread::spawn(move || {
        let (mut other, _) = listener.accept().expect("a client");
        let _ = other.write_all(&[b'x'; 128]);
    });
    let refused = Command::new(LADON).args(["console", &address]).output().expect("runs");
    stranger.join().expect("a thread");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("neither a console nor IPROTO"), "{said}");
}
