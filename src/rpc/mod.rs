//! The conversation with the script: frames, connections, and calls that are each answered once.
//!
//! [`exchange`] is one run's side of it (who may call what, how often, what became of each call), [`switchboard`] is
//! where threads wait for requests, possibly of many runs at once. A thread that serves reads the request itself and
//! writes the answer itself, so a call costs two wake-ups and no relay.

pub(crate) mod call;
pub(crate) mod connection;
pub(crate) mod exchange;
pub(crate) mod ledger;
pub(crate) mod switchboard;
pub(crate) mod wire;
