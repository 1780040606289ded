//! What people build on such a server, at work while it is killed: the programs in `clients/users`
//! at the gate `fsync`, with a `kill -9` and a restart whenever they ask for one.
//!
//! ```text
//! program --"kill"------> this test: kill -9, same port and data again
//!         <-"restarted"--            (the program's other threads work on, or try to)
//!         --"checks N"--> N comparisons with what was acknowledged, all of them right
//! ```

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ladon_conformance::{Server, locate, python};

/// Ended with the test, whatever ends that: a program that waits for a server would stay forever.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs `clients/users/SCRIPT`, which has to ask for `kills` kills and make `checks` checks.
fn works_through_kills(script: &str, kills: usize, checks: u32) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/users");
    let requirements = folder.join("requirements.txt");
    let python = locate::must("the packages", python::environment("users", &requirements));
    let mut server = locate::must("the server", Server::durable_subject());
    let process = Command::new(python)
        // No compiled files beside the sources.
        .arg("-B")
        .arg(folder.join(script))
        .arg(server.port().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut program = Program(process);
    let mut answers = program.0.stdin.take().expect("a pipe");
    let mut errors = program.0.stderr.take().expect("a pipe");
    let errors = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = errors.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });

    let mut killed = 0;
    let mut checked = None;
    for line in BufReader::new(program.0.stdout.take().expect("a pipe")).lines() {
        let line = line.expect("text");
        if line == "kill" {
            locate::must("the restart", server.kill_and_restart());
            killed += 1;
            // A program that is gone by now says so by its status.
            let _ = answers.write_all(b"restarted\n");
        } else if let Some(number) = line.strip_prefix("checks ") {
            checked = number.parse::<u32>().ok();
        } else {
            println!("{script}: {line}");
        }
    }
    let status = program.0.wait().expect("it ends");
    let errors = errors.join().expect("a reader");
    assert!(status.success(), "{script}: {status}\n{errors}\n{}", server.output());
    assert_eq!(killed, kills, "{script} asked for another number of kills");
    assert!(checked.is_some_and(|it| it >= checks), "{script} made {checked:?} checks\n{errors}");
}

#[test]
fn a_job_queue() {
    works_through_kills("job_queue.py", 3, 1000);
}

#[test]
fn a_leaderboard() {
    works_through_kills("leaderboard.py", 3, 300);
}

#[test]
fn a_rate_limiter() {
    works_through_kills("rate_limiter.py", 2, 300);
}

#[test]
fn sessions() {
    works_through_kills("sessions.py", 2, 300);
}

#[test]
fn django_sessions() {
    works_through_kills("django_sessions.py", 2, 100);
}
