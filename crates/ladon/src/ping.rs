//! `ladon ping`: whether the server answers, for the health check of a container.
//!
//! It takes the settings of the server itself, so in a container it needs no arguments.

use crate::exit::Exit;
use crate::output::with_stdout;
use crate::{cli, cli_tls};
use clap::ArgMatches;
use ladon_settings::{Endpoint, Settings};
use ladon_tls::ClientOptions;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long the server may take for each step.
const PATIENCE: Duration = Duration::from_secs(3);

/// Bytes of a reply that are read.
const REPLY_BYTES_MAX: u64 = 4096;

/// Asks once, and says what the answer was.
pub fn run(matches: &ArgMatches) -> Exit {
    let settings = match cli::load(matches) {
        Ok((settings, _)) => settings,
        Err(error) => {
            eprintln!("{error}");
            return Exit::Usage;
        }
    };
    let (endpoint, tls) = match cli_tls::own_server(matches, &settings) {
        Ok(Some(server)) => server,
        Ok(None) => {
            let what = if matches.get_flag("tls") { "with TLS" } else { "for RESP" };
            eprintln!("ladon: the server does not listen {what}; ask its /healthz (http-admin)");
            return Exit::Usage;
        }
        Err(error) => {
            eprintln!("ladon: {error}");
            return Exit::Usage;
        }
    };
    match connect(&endpoint, tls.as_ref()).and_then(|stream| ask(&settings, stream)) {
        Ok(answer) if is_alive(&answer) => {
            let line = format!("{answer}\n");
            with_stdout(|out| out.write_all(line.as_bytes())).err().unwrap_or(Exit::Ok)
        }
        Ok(answer) => {
            eprintln!("ladon: {endpoint} answers: {answer}");
            Exit::Refused
        }
        Err(error) => {
            eprintln!("ladon: no answer from {endpoint}: {error}");
            Exit::Refused
        }
    }
}

/// A server that asks for a password lives, whether or not this one was right.
fn is_alive(answer: &str) -> bool {
    answer == "PONG" || answer.starts_with("NOAUTH ")
}

trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

fn connect(endpoint: &Endpoint, tls: Option<&ClientOptions>) -> io::Result<Box<dyn Stream>> {
    match endpoint {
        Endpoint::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(Box::new(stream))
        }
        Endpoint::Tcp { host, port, .. } => {
            // Every address includes the loopback.
            let host = match host.as_str() {
                "*" | "0.0.0.0" => "127.0.0.1",
                "::*" | "::" => "::1",
                host => host,
            };
            let mut failed = io::Error::from(io::ErrorKind::NotFound);
            for address in (host, *port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&address, PATIENCE) {
                    Ok(stream) => {
                        stream.set_read_timeout(Some(PATIENCE))?;
                        stream.set_write_timeout(Some(PATIENCE))?;
                        let Some(tls) = tls else { return Ok(Box::new(stream)) };
                        let sealed = tls.connect(host, stream).map_err(io::Error::other)?;
                        return Ok(Box::new(sealed));
                    }
                    Err(error) => failed = error,
                }
            }
            Err(failed)
        }
    }
}

/// The reply to `PING`, without its first byte.
fn ask(settings: &Settings, mut stream: Box<dyn Stream>) -> io::Result<String> {
    let (mut requests, password) = (Vec::new(), settings.requirepass());
    if !password.is_empty() {
        write!(requests, "*2\r\n$4\r\nAUTH\r\n${}\r\n{password}\r\n", password.len())?;
    }
    requests.extend_from_slice(b"*1\r\n$4\r\nPING\r\n");
    stream.write_all(&requests)?;
    let mut replies = BufReader::new(stream.take(REPLY_BYTES_MAX));
    let mut line = || {
        let mut line = String::new();
        match replies.read_line(&mut line)? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            _ => Ok(line.trim_end().to_owned()),
        }
    };
    if !password.is_empty() {
        // While it loads, the server refuses the PING and not the password.
        let answer = line()?;
        if answer != "+OK" {
            return Ok(answer.trim_start_matches('-').to_owned());
        }
    }
    Ok(line()?.trim_start_matches(['+', '-']).to_owned())
}
