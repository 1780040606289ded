//! The thread of TLS' handshakes, from the settings to the IO threads.
//!
//! It exists from the moment that a listener with TLS is wanted.

use crate::io_thread::{Arriving, Handover};
use crate::listening::Listening;
use crate::shutdown::StopSignal;
use ladon_kernel::durability::Shutdown;
use ladon_kernel::long::aside_job::ReadAhead;
use ladon_net::Waker;
use ladon_settings::{AuthClients, Settings};
use ladon_tls::{Config, Control, Established, Handshakes, TlsError, TlsOptions};
use parking_lot::Mutex;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

/// What the settings say, as rustls' side wants it.
pub(crate) fn options(settings: &Settings) -> TlsOptions {
    TlsOptions {
        cert_file: PathBuf::from(settings.tls_cert_file()),
        key_file: PathBuf::from(settings.tls_key_file()),
        key_file_pass: settings.tls_key_file_pass(),
        ca_cert_file: PathBuf::from(settings.tls_ca_cert_file()),
        ca_cert_dir: PathBuf::from(settings.tls_ca_cert_dir()),
        auth_clients: match settings.tls_auth_clients() {
            AuthClients::No => ladon_tls::AuthClients::No,
            AuthClients::Yes => ladon_tls::AuthClients::Yes,
            AuthClients::Optional => ladon_tls::AuthClients::Optional,
        },
        protocols: settings.tls_protocols(),
        ciphersuites: settings.tls_ciphersuites(),
        ciphers: settings.tls_ciphers(),
        prefer_server_ciphers: settings.tls_prefer_server_ciphers(),
        session_caching: settings.tls_session_caching(),
        session_cache_size: settings.tls_session_cache_size(),
        session_cache_timeout: settings.tls_session_cache_timeout(),
    }
}

/// What the files of some options have given.
pub(crate) struct Loaded {
    pub(crate) options: TlsOptions,
    pub(crate) config: Result<Config, TlsError>,
}

impl Loaded {
    /// Reads the files.
    pub(crate) fn now(options: TlsOptions) -> Loaded {
        Loaded { config: options.load(), options }
    }

    /// What was read ahead for these settings. If they have changed since, reads what they name.
    pub(crate) fn of(read: Option<ReadAhead>, settings: &Settings) -> Loaded {
        let options = options(settings);
        match read.and_then(|read| read.downcast::<Loaded>().ok()) {
            Some(loaded) if loaded.options == options => *loaded,
            _ => Loaded::now(options),
        }
    }
}

/// Whether a setting is a part of what rustls gets.
pub(crate) fn is_of_config(name: &str) -> bool {
    name.starts_with("tls-") && name != PER_SECOND
        || name == "iproto-tls"
        || name == "memcached-tls"
        || name == "http-tls"
}

/// The setting that the thread follows without a new configuration.
pub(crate) const PER_SECOND: &str = "tls-handshakes-per-second";

/// Where established connections go, and what ends the thread.
struct Surroundings {
    handovers: Arc<[Handover]>,
    stop: Arc<StopSignal>,
}

/// The thread, if it runs.
#[derive(Default)]
pub(crate) struct TlsDoor {
    surroundings: OnceLock<Surroundings>,
    running: Mutex<Option<Running>>,
}

struct Running {
    control: Arc<Control>,
    waker: Waker,
    thread: JoinHandle<()>,
}

impl TlsDoor {
    /// Says where connections go; once, before the first configuration.
    pub(crate) fn attach(&self, handovers: Arc<[Handover]>, stop: Arc<StopSignal>) {
        let _ = self.surroundings.set(Surroundings { handovers, stop });
    }

    /// Uses a configuration from now on, and starts the thread if it does not run.
    pub(crate) fn install(
        &self,
        listening: &Arc<Listening>,
        config: Config,
        per_second: u32,
    ) -> io::Result<()> {
        let mut running = self.running.lock();
        if let Some(running) = &*running {
            running.control.replace(config);
            running.control.set_per_second(per_second);
            return Ok(());
        }
        let Some(Surroundings { handovers, stop }) = self.surroundings.get() else {
            return Err(io::Error::other("the server is not ready"));
        };
        let control = Arc::new(Control::new(config, per_second));
        let handshakes = Handshakes::new(Arc::clone(&control))?;
        let waker = handshakes.waker();
        let listening = Arc::clone(listening);
        let (handovers, stop) = (Arc::clone(handovers), Arc::clone(stop));
        stop.add_waker({
            let waker = waker.clone();
            move || waker.wake()
        });
        let thread = thread::Builder::new().name("ladon-tls".into()).spawn(move || {
            ladon_platform::priority::give_way();
            if let Err(error) = serve(handshakes, &listening, &handovers, &stop) {
                tracing::error!("the thread of TLS' handshakes failed: {error}");
                stop.request(Shutdown::default());
            }
        })?;
        *running = Some(Running { control, waker, thread });
        Ok(())
    }

    /// Changes how many handshakes may begin in a second.
    pub(crate) fn set_per_second(&self, per_second: u32) {
        if let Some(running) = &*self.running.lock() {
            running.control.set_per_second(per_second);
        }
    }

    /// Lets the thread look for news.
    pub(crate) fn wake(&self) {
        if let Some(running) = &*self.running.lock() {
            running.waker.wake();
        }
    }

    /// Waits until the thread has ended, which it does when the server stops.
    pub(crate) fn join(&self) {
        let running = self.running.lock().take();
        if let Some(running) = running {
            running.waker.wake();
            // A panic ends the process before this line.
            let _ = running.thread.join();
        }
    }
}

fn serve(
    mut handshakes: Handshakes,
    listening: &Listening,
    handovers: &[Handover],
    stop: &StopSignal,
) -> io::Result<()> {
    while !stop.is_requested() {
        if let Some(wanted) = listening.tls_news() {
            handshakes.listen(wanted)?;
        }
        handshakes.turn(&mut |established| {
            let Established { socket, info, session } = established;
            if let Some((_, handover)) = Handover::choose(handovers) {
                handover.give(Arriving {
                    socket,
                    info,
                    session: Some(Box::new(session)),
                    user: None,
                });
            }
        })?;
    }
    Ok(())
}
