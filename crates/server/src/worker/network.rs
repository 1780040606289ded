//! Events of the network: opened and closed connections, and bytes.

use super::Worker;
use crate::connection::{Connection, ConnectionStart};
use crate::dialect::memcached::Memcached;
use crate::dialect::{Dialect, resp};
use crate::io_thread::TOO_MANY_CLIENTS;
use crate::protocol::Protocol;
use crate::queues::WaitsFor;
use ladon_engine::Garbage;
use ladon_kernel::access::Access;
use ladon_kernel::client::clients::ClientInfo;
use ladon_kernel::client::disconnect::disconnect;
use ladon_kernel::client::session::Session;
use ladon_net::{ConnId, Outgoing};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Worker {
    /// A connection was opened. `refusal` is an error to send before closing it.
    pub fn opened(&mut self, start: ConnectionStart, refusal: Option<&str>) {
        let slot = start.conn.slot as usize;
        if self.connections.len() <= slot {
            self.connections.resize_with(slot + 1, || None);
        }
        self.now_ms = self.node.clock.unix_ms();
        let info = Arc::new(ClientInfo {
            id: self.node.clients.next_id(),
            thread: self.bench.local.thread,
            slot: start.conn.slot,
            fd: start.fd,
            addr: start.addr,
            laddr: start.laddr,
            unix: start.unix,
            certificate: start.certificate,
            transport_bytes: start.transport_bytes.into(),
            created_ms: self.now_ms,
            last_active_ms: self.now_ms.into(),
            resp: 2.into(),
            multi: (-1).into(),
            ..ClientInfo::default()
        });
        let authenticated = !self.node.requires_login();
        let access = Access::of_new_connection(&self.node);
        let session = Session::new(Arc::clone(&info), authenticated, access);
        let mut connection = Box::new(Connection::new(start.conn, session, Dialect::default()));
        let mut refusal = refusal;
        if let Some(user) = &start.user {
            match Access::of_user(&self.node, user) {
                Some(access) => connection.session.log_in(access),
                None => refusal = Some("NOAUTH the user of this connection was deleted."),
            }
        }
        match start.protocol {
            Protocol::Resp => self.greet_resp(&mut connection, refusal),
            Protocol::Iproto => self.greet_iproto(&mut connection, refusal),
            Protocol::Memcached => self.greet_memcached(&mut connection, refusal),
            Protocol::Http => {
                *connection.session.info.lib_name.lock() = b"http".to_vec();
                self.greet_resp(&mut connection, refusal);
            }
        }
        if refusal.is_some() {
            connection.closing = true;
            self.queues.push(WaitsFor::Release, &mut connection);
        } else {
            self.node.clients.add(info);
            self.bench.local.stats.connections_received.add(1);
        }
        debug_assert!(self.connections[slot].is_none(), "the backend reuses a live slot");
        self.connections[slot] = Some(connection);
        self.open += 1;
    }

    /// A client of Redis waits for nothing but its replies; a refused one is told why. Its certificate
    /// may say which user it is.
    fn greet_resp(&mut self, connection: &mut Connection, refusal: Option<&str>) {
        if let Some(names) = &connection.session.info.certificate
            && let Some(access) = Access::of_certificate(&self.node, names)
        {
            connection.session.log_in(access);
        }
        if let Some(refusal) = refusal {
            resp::refuse(refusal, connection.session.proto, &mut connection.replies.output);
        }
    }

    /// As `greet_resp`, of memcached.
    fn greet_memcached(&self, connection: &mut Connection, refusal: Option<&str>) {
        let memcached = Memcached { is_refused: refusal.is_some(), ..Memcached::default() };
        memcached.begins(&self.node, &connection.session.info);
        connection.dialect = Dialect::Memcached(Box::new(memcached));
        let Some(refusal) = refusal else { return };
        let line = if refusal == TOO_MANY_CLIENTS {
            // In its own words, which clients know.
            "ERROR Too many open connections\r\n".to_owned()
        } else {
            format!("SERVER_ERROR {}\r\n", refusal.strip_prefix("ERR ").unwrap_or(refusal))
        };
        connection.replies.output.extend_from_slice(line.as_bytes());
    }

    /// Bytes arrived.
    #[inline]
    pub fn received(&mut self, conn: ConnId, bytes: &[u8]) {
        self.bench.local.stats.net_input_bytes.add(bytes.len() as u64);
        self.bench.local.stats.reads_processed.add(1);
        let Some(connection) = &mut self.connections[conn.slot as usize] else {
            self.keep_received(conn, bytes);
            return;
        };
        if connection.closing || connection.closed || connection.aborted {
            // None of its requests runs any more.
            connection.discarded += bytes.len();
            self.queues.push(WaitsFor::Release, connection);
            return;
        }
        if connection.input.capacity() == 0 {
            connection.input = self.buffers.take();
        }
        connection.take_in(bytes);
        if let Some(iproto) = connection.dialect.iproto_mut()
            && let Some(others) = &mut iproto.set_aside
        {
            others.input_is_drained = false;
        }
        self.client_memory.count_input(&self.node, connection);
        if connection.unread() > Self::unread_bytes_max(connection, self.pace.unread_bytes_max) {
            self.queues.push(WaitsFor::Release, connection);
        }
        if connection.is_runnable() && !connection.held_back {
            self.queues.push(WaitsFor::Turn, connection);
        } else {
            // The connection needs to know at once when its wait is over.
            Self::close_direct_reply(connection);
            self.queues.push(WaitsFor::Release, connection);
        }
    }

    /// The connection's transport holds so much memory from now on.
    pub fn transport_holds(&mut self, conn: ConnId, bytes: usize) {
        let Some(connection) = &mut self.connections[conn.slot as usize] else { return };
        let info = &connection.session.info;
        info.transport_bytes.store(bytes, Relaxed);
        self.client_memory.count(&self.node, info);
    }

    /// The peer will send nothing more; what it has sent is still answered.
    pub fn input_ended(&mut self, conn: ConnId) {
        if let Some(connection) = &mut self.connections[conn.slot as usize] {
            connection.input_ended = true;
            connection.dialect.input_ended();
            connection.dialect.tell_of_end(&self.node);
            self.queues.push(WaitsFor::Release, connection);
        } else {
            self.keep_input_end(conn);
        }
    }

    /// The kernel has taken a whole buffer.
    #[inline]
    pub fn sent(&mut self, conn: ConnId, outgoing: Outgoing) {
        let outgoing = if self.away.is_some() {
            let Some(outgoing) = self.keep_sent(conn, outgoing) else { return };
            outgoing
        } else {
            outgoing
        };
        self.bench.local.stats.net_output_bytes.add(outgoing.len() as u64);
        self.bench.local.stats.writes_processed.add(1);
        if let Some(connection) = &mut self.connections[conn.slot as usize] {
            connection.replies.in_flight = 0;
            // Replies that the client has read must not hold back any connection, least of all
            // itself.
            self.replies.count(connection);
            Self::publish_output(connection);
            if connection.replies.output_bytes() != 0
                || connection.held_back
                || connection.closing
                || connection.input_ended
                || connection.blocked.is_some()
            {
                self.queues.push(WaitsFor::Release, connection);
            }
        }
        match outgoing {
            Outgoing::Buffer(buffer) => self.buffers.give(buffer),
            // This may be the last reference to a deleted string.
            Outgoing::Part { whole, .. } if Arc::strong_count(&whole) == 1 => {
                let bytes = whole.len();
                self.bench.scratch.garbage.push(Garbage::of_bytes(whole, bytes));
            }
            Outgoing::Part { .. } => {}
        }
    }

    /// A connection is closed.
    pub fn closed(&mut self, conn: ConnId) {
        if self.away.is_some() && self.keep_closed(conn) {
            return;
        }
        self.withdraw(conn.slot);
        if self.connections[conn.slot as usize].as_ref().is_some_and(|c| c.replies.long.is_some()) {
            self.long_replies.retain(|&slot| slot != conn.slot);
            self.end_long_reply(conn.slot);
        }
        self.drop_job(conn.slot);
        let Some(mut connection) = self.connections[conn.slot as usize].take() else { return };
        self.open -= 1;
        self.client_memory.forget(&connection.session.info);
        let mut thread = thread_parts!(self);
        disconnect(&mut thread, &mut connection.session);
        self.replies.forget(&mut connection);
        self.queues.leave_all(&mut connection);
        let mut dialect = std::mem::take(&mut connection.dialect);
        if let Some(memcached) = dialect.memcached_mut() {
            memcached.has_ended(&self.node, &connection.session.info);
        }
        self.bench.scratch.garbage.extend(dialect.leave(&self.node));
        let put_by = connection.replies.take_put_by();
        if !put_by.is_empty() {
            self.bench.scratch.garbage.push(Garbage::of(put_by));
        }
        self.buffers.give(connection.input);
        self.buffers.give(connection.replies.output);
    }
}
