//! A program that answers each line with a line, within a time. Knows nothing of what is said.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

/// A running program. It is killed when this is dropped.
///
/// A thread of its own writes and reads, so that a program that does neither can be given up. That
/// thread ends with the program's pipes.
#[derive(Debug)]
pub(super) struct Conversation {
    child: Child,
    lines: SyncSender<Vec<u8>>,
    answers: Receiver<io::Result<Vec<u8>>>,
}

/// Why there is no answer. The program is of no use afterwards.
#[derive(Debug)]
pub(super) enum Silence {
    /// The time is over.
    Late,
    /// It ended, or its pipes broke, or it said too much.
    Broken(io::Error),
}

impl Conversation {
    /// Starts a program. What it writes to stderr goes to the host's.
    pub(super) fn start(command: &mut Command, most_bytes: u64) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.ok_or_else(|| io::Error::other("no pipes"))?;
        let (lines, requests) = mpsc::sync_channel::<Vec<u8>>(1);
        let (replies, answers) = mpsc::sync_channel(1);
        let talk = move || talk(input, output, most_bytes, &requests, &replies);
        let started = std::thread::Builder::new().name("grainstore-embed".to_owned()).spawn(talk);
        let conversation = Self { child, lines, answers };
        started.map(|_| conversation)
    }

    /// Says a line, without its end, and waits for the one that answers it.
    pub(super) fn ask(&mut self, line: Vec<u8>, within: Duration) -> Result<Vec<u8>, Silence> {
        let ended = || io::Error::new(io::ErrorKind::BrokenPipe, "it ended");
        self.lines.send(line).map_err(|_| Silence::Broken(ended()))?;
        match self.answers.recv_timeout(within) {
            Ok(answer) => answer.map_err(Silence::Broken),
            Err(RecvTimeoutError::Timeout) => Err(Silence::Late),
            Err(RecvTimeoutError::Disconnected) => Err(Silence::Broken(ended())),
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is waited for, so that nothing of it is left.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes lines on until the program or whoever asks is gone.
fn talk(
    mut input: ChildStdin,
    output: ChildStdout,
    most_bytes: u64,
    requests: &Receiver<Vec<u8>>,
    replies: &SyncSender<io::Result<Vec<u8>>>,
) {
    let mut output = BufReader::new(output);
    while let Ok(mut line) = requests.recv() {
        line.push(b'\n');
        let written = input.write_all(&line).and_then(|()| input.flush());
        let answer = written.and_then(|()| read_line(&mut output, most_bytes));
        // What it says beside its answer would be taken for the answer to what it is asked next.
        let answer = answer.and_then(|answer| match output.buffer() {
            [] => Ok(answer),
            _ => Err(io::Error::other("it answered one line with more than one")),
        });
        let is_last = answer.is_err();
        if replies.send(answer).is_err() || is_last {
            return;
        }
    }
}

/// The next line, without its end.
fn read_line(output: &mut impl BufRead, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    output.take(most_bytes).read_until(b'\n', &mut line)?;
    if line.pop_if(|last| *last == b'\n').is_some() {
        return Ok(line);
    }
    if line.len() as u64 >= most_bytes {
        return Err(io::Error::other(format!("its answer has more than {most_bytes} bytes")));
    }
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended before it answered"))
}
