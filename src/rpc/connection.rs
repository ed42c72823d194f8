//! One client of a run's socket: requests in, replies out, neither ever blocking the thread that does it.

use super::exchange::Exchange;
use super::switchboard::Switchboard;
use super::wire::{self, Line, LineBuffer};
use crate::sys::fd;
use crate::sys::poller::Interest;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a first line may have: a token is 32 digits in some JSON.
const FIRST_LINE_BYTES: usize = 4096;

/// How much one wake-up reads before others get their turn.
const READ_BUDGET: usize = 8 << 20;

/// Replies that wait for a client which does not read them; above this its requests are not read either.
const OUTPUT_BACKLOG: usize = 1 << 20;

/// Calls of one connection that may be open before its requests wait in the socket.
const OPEN_CALLS: usize = 256;

/// One connection. Owned by its [`Exchange`]; open calls hold it too, so that a late reply finds a closed socket
/// rather than a stranger's descriptor.
#[derive(Debug)]
pub(crate) struct Connection {
    fd: OwnedFd,
    id: u64,
    board: Arc<Switchboard>,
    input: Mutex<Input>,
    output: Mutex<Output>,
}

#[derive(Debug)]
struct Input {
    lines: LineBuffer,
    authorized: bool,
}

#[derive(Debug, Default)]
struct Output {
    /// Bytes that the socket did not take yet, from `sent` on.
    pending: Vec<u8>,
    sent: usize,
    open_calls: usize,
    /// Reading is put off until replies were taken.
    paused: bool,
    /// Lines that were read already may wait for the same, where no event of the socket tells of them.
    holds_lines: bool,
    half_closed: bool,
    closed: bool,
}

/// What is left of a connection after it was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    Open,
    /// Nothing can come or go any more.
    Dead,
}

impl Connection {
    pub(crate) fn new(fd: OwnedFd, id: u64, board: Arc<Switchboard>) -> Self {
        Connection {
            fd,
            id,
            board,
            input: Mutex::new(Input {
                lines: LineBuffer::new(FIRST_LINE_BYTES),
                authorized: false,
            }),
            output: Mutex::default(),
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Reads what is there and hands each line to `exchange`, until it is enough for now. The caller re-arms the
    /// connection afterwards.
    pub(crate) fn receive(self: &Arc<Self>, exchange: &Arc<Exchange>) -> Liveness {
        let mut input = self.input();
        let mut budget = READ_BUDGET;
        let mut is_empty = false;
        loop {
            if !self.take_lines(&mut input, exchange) {
                return Liveness::Dead;
            }
            if is_empty || budget == 0 || self.must_pause() {
                return Liveness::Open;
            }
            let asked = std::cell::Cell::new(0);
            let got = input.lines.fill(|room| {
                asked.set(room.len());
                fd::recv(self.raw_fd(), room)
            });
            match got {
                Ok(0) => return self.at_end_of_input(),
                Ok(n) => {
                    budget = budget.saturating_sub(n);
                    // A short read has emptied the socket: asking again would only cost a system call.
                    is_empty = n < asked.get();
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Liveness::Open,
                Err(_) => return Liveness::Dead,
            }
        }
    }

    /// Handles complete lines, as many as may be handled now; false when the connection has to go.
    fn take_lines(self: &Arc<Self>, input: &mut Input, exchange: &Arc<Exchange>) -> bool {
        loop {
            // One read may hold hundreds of requests, each for a reply of any size.
            let is_over = self.output().hold_lines_if_over();
            if is_over {
                return true;
            }
            let Some(line) = input.lines.next_line() else {
                return true;
            };
            if !input.authorized {
                if !self.authorize(&line, exchange) {
                    return false;
                }
                input.authorized = true;
                input.lines.set_limit(exchange.max_message_bytes());
                continue;
            }
            match line {
                Line::Complete(line) => exchange.admit(self, line),
                Line::TooLong { size, head } => exchange.refuse_oversized(self, size, &head),
            }
        }
    }

    fn authorize(&self, line: &Line, exchange: &Exchange) -> bool {
        let token = match line {
            Line::Complete(line) => wire::parse_token(line),
            Line::TooLong { .. } => None,
        };
        let authorized = token.is_some_and(|t| exchange.is_token(&t));
        if !authorized {
            let message = "Unauthorized: the first line must be {\"token\": \"…\"} with the token of this run \
                           (PTC_RPC_TOKEN)";
            self.send(wire::error_frame("null", message));
        }
        authorized
    }

    /// The client will send no more; it may still be reading.
    fn at_end_of_input(&self) -> Liveness {
        let mut output = self.output();
        output.half_closed = true;
        if output.open_calls == 0 && output.backlog() == 0 {
            Liveness::Dead
        } else {
            Liveness::Open
        }
    }

    /// Sends `frame`, or as much of it as the socket takes; the rest goes when the client has read. Never blocks. A
    /// client that is gone is no error: its call has ended all the same.
    pub(crate) fn send(&self, frame: Vec<u8>) {
        let mut output = self.output();
        if output.closed {
            return;
        }
        if output.backlog() > 0 {
            output.append(&frame);
            return;
        }
        output.pending = frame;
        output.sent = 0;
        if !self.flush(&mut output) || output.half_closed {
            self.arm(&output);
        }
    }

    /// Sends what is waiting and re-arms the connection for whatever it waits for now.
    pub(crate) fn resume(&self) -> Liveness {
        let mut output = self.output();
        if output.closed {
            return Liveness::Dead;
        }
        let drained = self.flush(&mut output);
        if output.half_closed && drained && output.open_calls == 0 {
            return Liveness::Dead;
        }
        output.paused = output.is_over();
        self.arm(&output);
        Liveness::Open
    }

    /// True when nothing is left to send.
    fn flush(&self, output: &mut Output) -> bool {
        while output.backlog() > 0 {
            match fd::send(self.raw_fd(), &output.pending[output.sent..]) {
                Ok(n) => output.sent += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return false,
                Err(_) => {
                    // The reader is gone; the hang-up that follows removes the connection.
                    output.closed = true;
                    break;
                }
            }
        }
        output.pending = Vec::new();
        output.sent = 0;
        true
    }

    fn arm(&self, output: &Output) {
        let interest = Interest {
            read: !output.paused && !output.half_closed,
            // The last reply to a client that has stopped sending wakes a server, which then closes the connection.
            // The same for lines that wait here: a socket that can be written to tells so at once.
            write: output.backlog() > 0
                || (output.half_closed && output.open_calls == 0)
                || (output.holds_lines && !output.paused),
        };
        self.board.arm_connection(self, interest);
    }

    fn must_pause(&self) -> bool {
        let mut output = self.output();
        output.paused = output.is_over();
        output.paused
    }

    pub(crate) fn count_open(&self) {
        self.output().open_calls += 1;
    }

    /// One call fewer is open; a connection that was paused for it is read again. To be called after its reply was
    /// sent: with the last one a client that has stopped sending is left.
    pub(crate) fn count_closed(&self) {
        let mut output = self.output();
        output.open_calls = output.open_calls.saturating_sub(1);
        let was_paused = std::mem::replace(&mut output.paused, false);
        if was_paused || output.half_closed {
            output.paused = was_paused && output.is_over();
            if !output.closed {
                self.arm(&output);
            }
        }
    }

    /// Ends the connection for good: nothing is read or written any more.
    pub(crate) fn close(&self) {
        let mut output = self.output();
        if !output.closed {
            output.closed = true;
            output.pending = Vec::new();
        }
        let _ = fd::shutdown(self.raw_fd());
    }

    fn input(&self) -> MutexGuard<'_, Input> {
        self.input.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Output {
    fn backlog(&self) -> usize {
        self.pending.len() - self.sent
    }

    /// Appends to what waits and forgets what was sent of it, so that a slow reader's replies do not add up here.
    fn append(&mut self, frame: &[u8]) {
        if self.sent >= self.backlog() {
            self.pending.drain(..self.sent);
            self.sent = 0;
        }
        self.pending.extend_from_slice(frame);
    }

    fn hold_lines_if_over(&mut self) -> bool {
        self.holds_lines = self.is_over();
        self.holds_lines
    }

    fn is_over(&self) -> bool {
        self.backlog() > OUTPUT_BACKLOG || self.open_calls >= OPEN_CALLS
    }
}
