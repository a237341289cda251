//! A child process that answers each line with a line, within a time. Must not know what the lines mean.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

/// A running program, killed when this is dropped.
///
/// A thread of its own reads and writes the pipes, so that a program that does neither can be given up. That
/// thread ends when the pipes close.
#[derive(Debug)]
pub(super) struct EmbedderProcess {
    child: Child,
    lines: SyncSender<Vec<u8>>,
    answers: Receiver<io::Result<Vec<u8>>>,
}

/// Reason there is no answer. The program must not be used afterwards.
#[derive(Debug)]
pub(super) enum ProcessError {
    /// The time is over.
    TimedOut,
    /// The program ended, its pipes broke, or its answer was too long.
    Broken(io::Error),
}

impl EmbedderProcess {
    /// Starts a program. Its stderr is that of the host.
    pub(super) fn start(command: &mut Command, most_bytes: u64) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.ok_or_else(|| io::Error::other("no pipes"))?;
        let (lines, requests) = mpsc::sync_channel::<Vec<u8>>(1);
        let (replies, answers) = mpsc::sync_channel(1);
        let talk = move || exchange_lines(input, output, most_bytes, &requests, &replies);
        let started = std::thread::Builder::new().name("grainstore-embed".to_owned()).spawn(talk);
        let conversation = Self { child, lines, answers };
        started.map(|_| conversation)
    }

    /// Sends a line, without its line feed, and waits for the line that answers it.
    pub(super) fn request(
        &mut self,
        line: Vec<u8>,
        within: Duration,
    ) -> Result<Vec<u8>, ProcessError> {
        let ended = || io::Error::new(io::ErrorKind::BrokenPipe, "it ended");
        self.lines.send(line).map_err(|_| ProcessError::Broken(ended()))?;
        match self.answers.recv_timeout(within) {
            Ok(answer) => answer.map_err(ProcessError::Broken),
            Err(RecvTimeoutError::Timeout) => Err(ProcessError::TimedOut),
            Err(RecvTimeoutError::Disconnected) => Err(ProcessError::Broken(ended())),
        }
    }
}

impl Drop for EmbedderProcess {
    fn drop(&mut self) {
        // Waiting for the child, whether or not it has ended by itself, leaves no zombie process.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes lines on until the program or the requester is gone.
fn exchange_lines(
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
        // Output beyond the answer would be taken for the answer to the next request.
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

/// Reads the next line, without its line feed.
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
