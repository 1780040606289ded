//! What a link costs: CPU of a small question with its answer, and how long small ones wait beside
//! a large one. Two nodes, each on a thread of its own as in the server, over loopback.
//!
//! `cargo run --profile fast -p ladon-mesh --example round_trip [LARGE_MIB]`

use bytes::Bytes;
use ladon_mesh::{Identity, Limits, Mesh, Peer, Security, Service};
use ladon_tls::{NodeTls, TlsOptions};
use nix::time::{ClockId, clock_gettime};
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::fs;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ECHO: u8 = 16;
const CPU: u8 = 17;
const LENGTH: u8 = 18;
const LONG: u8 = 19;

const LIMIT: Duration = Duration::from_secs(60);
const BODY_BYTES: usize = 64;
const ROUNDS: u32 = 50_000;

struct Answers;

/// CPU of this thread.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a clock");
    Duration::new(time.tv_sec() as u64, time.tv_nsec() as u32)
}

impl Service for Answers {
    fn knows(&self, kind: u8) -> bool {
        (ECHO..=LONG).contains(&kind)
    }

    async fn answer(&self, _: &Peer, kind: u8, _: u16, body: Bytes) -> Result<Vec<u8>, String> {
        Ok(match kind {
            ECHO => body.to_vec(),
            CPU => (cpu().as_nanos() as u64).to_le_bytes().to_vec(),
            LENGTH => body.len().to_le_bytes().to_vec(),
            // Its own time is no link's, so it has pages already that are zeros.
            _ => vec![0; usize::from_le_bytes(body.as_ref().try_into().unwrap_or_default())],
        })
    }
}

fn identity(node: u64) -> Arc<Mutex<Identity>> {
    let identity = Identity { node, incarnation: node, ..Identity::default() };
    Arc::new(Mutex::new(identity))
}

/// Certificates of an authority that is made for this run.
fn tls() -> NodeTls {
    let folder = tempfile::tempdir().expect("a folder");
    let mut params = CertificateParams::new(vec![]).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "authority");
    let key = KeyPair::generate().expect("a key");
    let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![]).expect("parameters");
    let certificate = params.signed_by(&key, &issuer).expect("a certificate");
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        path
    };
    let options = TlsOptions {
        ca_cert_file: file("ca", issuer.pem()),
        cert_file: file("crt", certificate.pem()),
        key_file: file("key", key.serialize_pem()),
        ..TlsOptions::default()
    };
    options.load_nodes().expect("they can be used")
}

fn run<T>(task: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(task)
}

/// A node that answers, on a thread of its own, for as long as the process runs.
fn start(security: Security) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        let mesh = Mesh::new(identity(1), security, Limits::default());
        run(mesh.listen(listener, Arc::new(Answers)))
    });
    address
}

async fn ask(mesh: &Mesh, address: &str, kind: u8, body: Vec<u8>) -> Bytes {
    mesh.ask(address, Some(1), kind, 0, body, LIMIT).await.expect("an answer")
}

async fn cpu_there(mesh: &Mesh, address: &str) -> Duration {
    let nanoseconds = ask(mesh, address, CPU, Vec::new()).await;
    Duration::from_nanos(u64::from_le_bytes(nanoseconds.as_ref().try_into().expect("a time")))
}

/// CPU of both sides and time for one question, with `together` of them under way.
async fn small(mesh: &Mesh, address: &str, together: u32) {
    let (here, there, begin) = (cpu(), cpu_there(mesh, address).await, Instant::now());
    for _ in 0..ROUNDS / together {
        let mut asked = tokio::task::JoinSet::new();
        for _ in 1..together {
            let (mesh, address) = (mesh.clone(), address.to_owned());
            asked.spawn(async move { ask(&mesh, &address, ECHO, vec![0; BODY_BYTES]).await });
        }
        ask(mesh, address, ECHO, vec![0; BODY_BYTES]).await;
        asked.join_all().await;
    }
    let took = begin.elapsed() / ROUNDS;
    let (here, there) = (cpu() - here, cpu_there(mesh, address).await - there);
    let (here, there) = (here / ROUNDS, there / ROUNDS);
    println!("  {together:3} at once: {took:?} each; CPU {here:?} asks, {there:?} answers");
}

/// The longest and the mean time of small questions beside a large message.
async fn beside(what: &str, mesh: &Mesh, address: &str, kind: u8, body: Vec<u8>) {
    let mut times = Vec::new();
    let (here, there, begin) = (cpu(), cpu_there(mesh, address).await, Instant::now());
    tokio::select! {
        _ = ask(mesh, address, kind, body) => {}
        () = async {
            loop {
                let begin = Instant::now();
                ask(mesh, address, ECHO, vec![0; BODY_BYTES]).await;
                times.push(begin.elapsed());
            }
        } => {}
    }
    let took = begin.elapsed();
    let (here, there) = (cpu() - here, cpu_there(mesh, address).await - there);
    times.sort();
    let at = |part: f64| times.get((times.len() as f64 * part) as usize).copied();
    println!(
        "  {what}: {took:?}, CPU {here:?} asks, {there:?} answers; {} small ones beside it, median \
         {:?}, 99 % {:?}, longest {:?}",
        times.len(),
        at(0.5).unwrap_or_default(),
        at(0.99).unwrap_or_default(),
        times.last().copied().unwrap_or_default(),
    );
}

async fn measure(security: Security) {
    let name = format!("{security:?}");
    let address = start(security.clone());
    let large: usize = std::env::args().nth(1).map_or(600, |mib| mib.parse().expect("MiB")) << 20;
    println!("{name}");
    let mesh = Mesh::new(identity(2), security, Limits::default());
    ask(&mesh, &address, ECHO, Vec::new()).await;
    for together in [1, 16] {
        small(&mesh, &address, together).await;
    }
    beside("a large question", &mesh, &address, LENGTH, vec![1; large]).await;
    beside("a large answer", &mesh, &address, LONG, large.to_le_bytes().to_vec()).await;
}

fn main() {
    run(async {
        measure(Security::Secret(b"secret".to_vec())).await;
        measure(Security::Tls(tls())).await;
    });
}
