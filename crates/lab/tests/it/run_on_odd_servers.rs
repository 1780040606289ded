//! Servers that answer late, wrongly or not at all, a panic in the middle of a pass, and servers
//! that were running before: what `ladon-lab run` makes of them.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use ladon_lab::dialects::resp::Resp;
use ladon_lab::load::driver::{Driver, LoadError, Waiting};
use ladon_lab::load::sample::Sample;
use ladon_lab::load::stream::{Stream, Target};
use ladon_lab::results::schema::{Outcome, Results};
use ladon_lab::systems::instance::{Instance, Want};
use ladon_lab::systems::program_paths::ProgramPaths;
use ladon_lab::systems::registry;
use ladon_lab::traffic::iterations::Deed;
use ladon_lab::traffic::speaking::Speaking;
use ladon_lab::traffic::{Asked, World};
use ladon_testkit::Ports;

/// A server that answers each piece of bytes that arrives by what `answer` makes of it.
fn fake_server(answer: fn(&[u8], u64) -> Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream, answer));
        }
    });
    address
}

fn serve(mut stream: TcpStream, answer: fn(&[u8], u64) -> Vec<u8>) {
    let _ = stream.set_nodelay(true);
    let mut buffer = [0; 65536];
    let mut count = 0;
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        let reply = answer(&buffer[..read], count);
        count += 1;
        if stream.write_all(&reply).is_err() {
            return;
        }
    }
}

/// One user sets keys on a fake server for `time`, every `interval` where there is one.
fn set_keys(
    address: SocketAddr,
    time: Duration,
    interval: Option<Duration>,
) -> Result<Sample, LoadError> {
    let mut world = World::new(1);
    let asked = Asked::Iterations { space: "k", deed: Deed::Set, value_bytes: 16 };
    let traffic = world.traffic(&asked, 1, 1);
    let stream = Stream::open(&Target::plain(address), &mut Resp::new())?;
    let speaking = Speaking::new(Box::new(Resp::new()), traffic, 1, 1);
    let mut driver = Driver::over(vec![stream], 1, Waiting::Sleep, speaking)?;
    driver.set_patience(Duration::from_millis(500));
    if let Some(interval) = interval {
        driver.pace(0, interval, Duration::ZERO);
    }
    driver.run(time)
}

/// One user inserts one row, and then looks its group up.
fn find_a_row(address: SocketAddr, members: u32) -> Result<Sample, LoadError> {
    let mut world = World::new(1);
    let mut sample = None;
    for read in [false, true] {
        let asked = Asked::Rows { read, members, value_bytes: 16 };
        let traffic = world.traffic(&asked, 1, 1);
        let stream = Stream::open(&Target::plain(address), &mut Resp::with_search())?;
        let speaking = Speaking::new(Box::new(Resp::with_search()), traffic, 1, 1);
        let mut driver = Driver::over(vec![stream], 1, Waiting::Sleep, speaking)?;
        sample = Some(driver.run(Duration::from_millis(300))?);
    }
    Ok(sample.unwrap())
}

/// A search module that answers with a row whose value is the one that `HSET` brought last, of
/// which `wrong` makes something else.
fn search(request: &[u8], wrong: fn(String) -> String) -> Vec<u8> {
    static ROWS: Mutex<BTreeMap<String, (String, String)>> = Mutex::new(BTreeMap::new());
    let text = String::from_utf8_lossy(request);
    let words: Vec<&str> = text.split("\r\n").skip(2).step_by(2).collect();
    let mut rows = ROWS.lock().unwrap();
    if words[0] == "HSET" {
        rows.insert(words[3].to_owned(), (words[1].to_owned(), words[5].to_owned()));
        return b":2\r\n".to_vec();
    }
    let group = words[2].trim_start_matches("@g:{").trim_end_matches('}');
    let (key, value) = rows[group].clone();
    let value = wrong(value);
    let [key, value] = [key, value].map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*3\r\n:1\r\n{key}*2\r\n$1\r\nv\r\n{value}").into_bytes()
}

#[test]
fn a_search_is_right_late_or_wrong() {
    let right = fake_server(|request, _| search(request, |value| value));
    assert!(find_a_row(right, 1).unwrap().replies > 0);
    let late = fake_server(|request, _| {
        std::thread::sleep(Duration::from_millis(20));
        search(request, |value| value)
    });
    let sample = find_a_row(late, 1).unwrap();
    assert!(sample.latency_us(0.01) >= 19_000.0, "{}", sample.latency_us(0.01));
    let wrong = fake_server(|request, _| search(request, |value| value.to_lowercase()));
    let error = find_a_row(wrong, 1).unwrap_err();
    assert!(matches!(error, LoadError::Wrong { .. }), "{error}");
    // A row of two is not the group.
    let error = find_a_row(right, 2).unwrap_err();
    assert!(matches!(error, LoadError::Wrong { .. }), "{error}");
}

#[test]
fn a_server_that_never_answers_is_reported() {
    let silent = fake_server(|_, _| Vec::new());
    let error = set_keys(silent, Duration::from_secs(60), None).unwrap_err();
    assert!(matches!(error, LoadError::Stalled(_, 1)), "{error}");
}

#[test]
fn a_server_that_answers_late_is_slow_not_wrong() {
    const LATE: Duration = Duration::from_millis(30);
    let late = fake_server(|_, _| {
        std::thread::sleep(LATE);
        b"+OK\r\n".to_vec()
    });
    let sample = set_keys(late, Duration::from_millis(500), None).unwrap();
    assert!(sample.replies > 0);
    assert!(sample.latency_us(0.01) >= 29_000.0, "{}", sample.latency_us(0.01));
}

/// One pause of 300 ms is one slow reply to a user who waits for it, and many to users who come
/// when they come.
#[test]
fn a_pause_is_not_hidden_by_waiting_for_it() {
    let pausing = || {
        fake_server(|_, count| {
            if count == 50 {
                std::thread::sleep(Duration::from_millis(300));
            }
            b"+OK\r\n".to_vec()
        })
    };
    let interval = Duration::from_millis(2);
    let open = set_keys(pausing(), Duration::from_millis(1500), Some(interval)).unwrap();
    let slow = open.lane_longer_than(0, Duration::from_millis(100));
    // Due every 2 ms, so those of the first 200 ms of the pause waited for 100 ms and more.
    assert!(slow >= 90, "{slow} of {}", open.replies);
    let closed = set_keys(pausing(), Duration::from_millis(1500), None).unwrap();
    assert!(closed.latency_us(1.0) >= 299_000.0);
}

#[test]
fn a_server_that_answers_wrongly_is_told_what_was_asked() {
    let liar = fake_server(|_, _| b"-OOM no room\r\n".to_vec());
    let error = set_keys(liar, Duration::from_secs(5), None).unwrap_err();
    assert!(matches!(error, LoadError::Wrong { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("set k:0:0") && text.contains("OOM no room"), "{text}");
}

fn lab(out: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ladon-lab"))
        .args(["run", "--rounds", "1", "--seconds", "0.1", "--keys", "1000", "--clients", "3"])
        .args(arguments)
        .arg("--out")
        .arg(out)
        .output()
        .unwrap()
}

fn results(out: &Path) -> Results {
    ladon_lab::results::file::read(&out.join("results.json")).unwrap()
}

#[test]
fn a_wrong_answer_ends_the_run_and_leaves_no_figure_of_it() {
    // Says OK to everything; reads must have values.
    let liar = fake_server(|bytes, _| {
        let requests = bytes.iter().filter(|&&byte| byte == b'*').count();
        b"+OK\r\n".repeat(requests)
    });
    let out = tempfile::tempdir().unwrap();
    let attach = format!("liar={liar}");
    let output = lab(out.path(), &["--work", "kv,counter", "--only-attached", "--attach", &attach]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("liar (kv): wrong answer"), "{text}");
    let results = results(out.path());
    assert!(results.partial);
    let cells: Vec<_> = results.works[0].parts.iter().flat_map(|part| &part.cells).collect();
    let empty = cells.iter().filter(|cell| match &cell.outcome {
        Outcome::Empty { reason } => reason.contains("wrong answer"),
        Outcome::Measured { .. } => false,
    });
    assert!(empty.count() >= 2, "{cells:?}");
    assert!(results.works[1].parts.iter().all(|part| part.cells.is_empty()), "no further work");
}

/// A server that the test started, not the lab.
struct Own(Child);

impl Drop for Own {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn own_redis(arguments: &[String], port: u16) -> Option<Own> {
    let child = Command::new("redis-server")
        .args(["--save", "", "--bind", "127.0.0.1"])
        .args(arguments)
        .stdout(Stdio::null())
        .spawn();
    let Ok(child) = child else {
        eprintln!("SKIPPED: no redis-server on PATH (apt-get install redis-server)");
        return None;
    };
    let mut own = Own(child);
    let deadline = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        if own.0.try_wait().is_ok_and(|status| status.is_some()) {
            eprintln!("SKIPPED: this redis-server does not start with {arguments:?}");
            return None;
        }
        assert!(Instant::now() < deadline, "redis-server does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
    Some(own)
}

fn outcome<'a>(results: &'a Results, work: &str, part: &str) -> &'a Outcome {
    let work = results.works.iter().find(|other| other.work == work).unwrap();
    let part = work.parts.iter().find(|other| other.part == part).unwrap();
    &part.cells[0].outcome
}

#[test]
fn an_attached_server_with_a_password_is_measured_and_the_password_kept() {
    let ports = Ports::take(1).unwrap();
    let port = ports.first();
    let words = ["--port".to_owned(), port.to_string(), "--requirepass".into(), "s3cret".into()];
    let Some(_redis) = own_redis(&words, port) else { return };
    let out = tempfile::tempdir().unwrap();
    let attach = format!("cloud=redis://:s3cret@127.0.0.1:{port}");
    let works = ["--work", "kv,durability", "--only-attached", "--attach"];
    let output = lab(out.path(), &[&works[..], &[attach.as_str()]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results = results(out.path());
    let Outcome::Measured { rounds } = outcome(&results, "kv", "get-3") else { panic!("empty") };
    assert!(rounds[0].operations > 0);
    assert_eq!(rounds[0].cpu_user_us, None, "nothing is known of its processes");
    let Outcome::Empty { reason } = outcome(&results, "durability", "crash") else {
        panic!("a server that is not ours was killed")
    };
    assert!(reason.contains("attached"), "{reason}");
    let text = std::fs::read_to_string(out.path().join("results.json")).unwrap();
    assert!(!text.contains("s3cret"));

    let attach = format!("cloud=redis://:other@127.0.0.1:{port}");
    let output = lab(out.path(), &["--work", "kv", "--only-attached", "--attach", &attach]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let results = self::results(out.path());
    let Outcome::Empty { reason } = outcome(&results, "kv", "get-3") else { panic!("logged in") };
    assert!(reason.contains("WRONGPASS"), "{reason}");
}

/// A certificate authority and a certificate for 127.0.0.1, by the `openssl` program.
fn certificates(folder: &Path) -> bool {
    std::fs::write(folder.join("ext"), "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
        .unwrap();
    let new = "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj";
    let commands = [
        format!("{new} /CN=lab-authority -x509 -days 2 -keyout ca.key -out ca.pem"),
        format!("{new} /CN=lab -keyout leaf.key -out leaf.csr"),
        "x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out leaf.pem"
            .to_owned(),
    ];
    commands.iter().all(|command| {
        let output = Command::new("openssl").args(command.split(' ')).current_dir(folder).output();
        output.is_ok_and(|output| output.status.success())
    })
}

#[test]
fn an_attached_server_over_tls_is_measured_if_its_certificate_is_right() {
    let folder = tempfile::tempdir().unwrap();
    if !certificates(folder.path()) {
        eprintln!("SKIPPED: no openssl program to make certificates with");
        return;
    }
    let ports = Ports::take(1).unwrap();
    let port = ports.first();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let words = [
        "--port".to_owned(),
        "0".into(),
        "--tls-port".into(),
        port.to_string(),
        "--tls-cert-file".into(),
        file("leaf.pem"),
        "--tls-key-file".into(),
        file("leaf.key"),
        "--tls-ca-cert-file".into(),
        file("ca.pem"),
        "--tls-auth-clients".into(),
        "no".into(),
    ];
    let Some(_redis) = own_redis(&words, port) else { return };
    let out = tempfile::tempdir().unwrap();
    let attach = format!("cloud=rediss://127.0.0.1:{port}");
    let ca = file("ca.pem");
    let arguments = ["--work", "kv,sets,batch", "--only-attached", "--attach", &attach];
    let output = lab(out.path(), &[&arguments[..], &["--attach-ca", &ca]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let trusted = results(out.path());
    // Asked over TLS, too.
    let system = trusted.systems.iter().find(|system| system.name == "cloud").unwrap();
    assert!(system.version.is_some() && system.settings[0].promise == "none", "{system:?}");
    for (work, part) in
        [("kv", "get-3"), ("kv", "mix"), ("sets", "members-3"), ("batch", "set-many")]
    {
        let outcome = outcome(&trusted, work, part);
        let Outcome::Measured { rounds } = outcome else { panic!("{work} {part}: {outcome:?}") };
        assert!(rounds[0].operations > 0);
    }

    // Another authority's: nobody is measured who may be somebody else.
    let other = tempfile::tempdir().unwrap();
    assert!(certificates(other.path()));
    let ca = other.path().join("ca.pem").display().to_string();
    let output = lab(out.path(), &[&arguments[..], &["--attach-ca", &ca]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let results = results(out.path());
    let Outcome::Empty { reason } = outcome(&results, "kv", "get-3") else { panic!("trusted") };
    assert!(reason.contains("certificate"), "{reason}");
}

#[test]
fn a_panic_leaves_no_child() {
    let (found, _) = registry::named(&["redis".to_owned()], &ProgramPaths::default()).unwrap();
    let Some(found) = found.first() else {
        eprintln!("SKIPPED: no redis-server on PATH (apt-get install redis-server)");
        return;
    };
    let root = tempfile::tempdir().unwrap();
    let cores = ladon_lab::measure::cores::allowed().unwrap();
    let pids = std::sync::Mutex::new(Vec::new());
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let want = Want::new(found.system.settings()[0]);
        let patience = Duration::from_secs(30);
        let instance = Instance::start(found, &want, root.path(), &cores, patience).unwrap();
        *pids.lock().unwrap() = instance.pids();
        panic!("in the middle of a pass");
    }));
    assert!(result.is_err());
    let pids = pids.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    assert_eq!(pids.len(), 1);
    assert!(!Path::new(&format!("/proc/{}", pids[0])).exists());
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
}
