//! Framing of grains in a stream (OMS 11.6): a length before each grain, and a length of zero at the
//! end.
//!
//! The framing is for transport, not for storage. Each grain is handed to the caller before the next is
//! read, so a stream may be endless.

use std::io::{self, Read, Write};

use super::entry::{self, ContainerEntry};
use super::io as failed;
use crate::error::{Result, corrupt};
use crate::grain::DecodeOptions;
use crate::profile::DeviceProfile;

/// Writes frames to a stream.
///
/// ```
/// use grainstore_format::container::{FrameReader, FrameWriter};
/// use grainstore_format::{DecodeOptions, DeviceProfile, Encoding, EpochMs, EventBuilder};
///
/// let grain = EventBuilder::new(EpochMs::new(1_768_471_200_000), "alice said hello").build()?;
/// let mut frames = FrameWriter::new(Vec::new(), DeviceProfile::EXTENDED);
/// frames.push(grain.encode(Encoding::Cbor)?.bytes())?;
/// let stream = frames.finish()?;
///
/// for entry in FrameReader::new(stream.as_slice(), DecodeOptions::default()) {
///     assert_eq!(entry?.grain().fields(), grain.fields());
/// }
/// # Ok::<(), grainstore_format::Error>(())
/// ```
#[derive(Debug)]
pub struct FrameWriter<W> {
    out: W,
    profile: DeviceProfile,
}

impl<W: Write> FrameWriter<W> {
    /// Creates a writer of frames that accepts grains up to the limits of this profile.
    pub fn new(out: W, profile: DeviceProfile) -> Self {
        Self { out, profile }
    }

    /// Writes one entry: a blob, or the envelope around one.
    ///
    /// # Errors
    /// `ERR_TOO_LARGE`; `ERR_CORRUPT` for an empty entry, which would end the stream; `ERR_IO`.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        entry::check_size(bytes.len(), &self.profile)?;
        if bytes.is_empty() {
            return Err(corrupt("a frame of no bytes ends the stream"));
        }
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let written =
            self.out.write_all(&length.to_be_bytes()).and_then(|()| self.out.write_all(bytes));
        written.map_err(|error| failed(&error))
    }

    /// Writes the end mark, flushes, and returns the inner writer.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub fn finish(mut self) -> Result<W> {
        let ended = self.out.write_all(&[0; 4]).and_then(|()| self.out.flush());
        ended.map_err(|error| failed(&error))?;
        Ok(self.out)
    }
}

/// Iterates over the frames that a [`FrameWriter`] wrote to a stream and decodes their grains. After
/// the first error the iterator ends.
#[derive(Debug)]
pub struct FrameReader<'o, R> {
    input: R,
    options: DecodeOptions<'o>,
    /// The number of frames read so far.
    frames: u64,
    /// The number of bytes read so far.
    bytes: u64,
    ended: bool,
}

impl<'o, R: Read> FrameReader<'o, R> {
    /// Creates a reader of frames. The options give the limits and the key of encrypted payloads.
    pub fn new(input: R, options: DecodeOptions<'o>) -> Self {
        Self { input, options, frames: 0, bytes: 0, ended: false }
    }

    /// Returns the input, positioned after the end mark if the iterator has ended without an error.
    pub fn into_inner(self) -> R {
        self.input
    }

    fn read(&mut self) -> Result<Option<ContainerEntry>> {
        let mut length = [0; 4];
        self.fill(&mut length)?;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length == 0 {
            return Ok(None);
        }
        entry::check_size(length, &self.options.profile)?;
        let mut bytes = vec![0; length];
        self.fill(&mut bytes)?;
        self.frames += 1;
        ContainerEntry::read(bytes, &self.options).map(Some)
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.input.read_exact(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => corrupt("the stream ends before its end mark")
                .with_hint("what came before is whole; ask the sender for the rest"),
            _ => failed(&error),
        })?;
        self.bytes += buffer.len() as u64;
        Ok(())
    }
}

impl<R: Read> Iterator for FrameReader<'_, R> {
    type Item = Result<ContainerEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let (frame, at) = (self.frames, self.bytes);
        let entry = self.read();
        self.ended = !matches!(entry, Ok(Some(_)));
        entry.map_err(|error| error.in_context(&format!("frame {frame} at byte {at}"))).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cose::Envelope;
    use crate::{Encoding, Grain};

    fn blob(subject: &str) -> Vec<u8> {
        let json = format!(
            r#"{{"type":"belief","subject":"{subject}","relation":"r","object":"o","confidence":1,"created_at":1}}"#
        );
        Grain::from_json(&json).unwrap().encode(Encoding::MessagePack).unwrap().into_bytes()
    }

    fn stream(blobs: &[Vec<u8>]) -> Vec<u8> {
        let mut writer = FrameWriter::new(Vec::new(), DeviceProfile::EXTENDED);
        blobs.iter().try_for_each(|blob| writer.push(blob)).unwrap();
        writer.finish().unwrap()
    }

    fn read(stream: &[u8]) -> Result<Vec<Vec<u8>>> {
        let reader = FrameReader::new(stream, DecodeOptions::default());
        reader.map(|entry| Ok(entry?.bytes().to_vec())).collect()
    }

    #[test]
    fn frames_have_a_big_endian_length_before_and_a_zero_behind_them() {
        let (a, b) = (blob("a"), blob("b"));
        let mut expected = vec![0, 0, 0, u8::try_from(a.len()).unwrap()];
        expected.extend(&a);
        expected.extend([0, 0, 0, u8::try_from(b.len()).unwrap()]);
        expected.extend(&b);
        expected.extend([0; 4]);
        assert_eq!(stream(&[a.clone(), b.clone()]), expected);
        assert_eq!(read(&expected), Ok(vec![a, b]));
        assert_eq!(stream(&[]), [0; 4]);
        assert_eq!(read(&[0; 4]), Ok(Vec::new()));
    }

    #[test]
    fn a_stream_cut_anywhere_is_an_error_that_says_where() {
        let whole = stream(&[blob("a"), blob("b")]);
        let second = 4 + blob("a").len();
        for len in 0..whole.len() {
            let error = read(&whole[..len]).unwrap_err();
            assert_eq!(error.code(), "ERR_CORRUPT", "{len} bytes");
            let frame = if len < second { "frame 0 at byte 0" } else { "frame " };
            assert!(error.place().starts_with(frame), "{len} bytes: {}", error.place());
        }
    }

    #[test]
    fn a_declared_length_is_believed_within_the_limit_only() {
        let most = DeviceProfile::EXTENDED.max_blob_bytes + Envelope::MAX_WRAPPER_BYTES;
        for (length, code) in [
            (most, "ERR_CORRUPT"),
            (most + 1, "ERR_TOO_LARGE"),
            (u32::MAX as usize, "ERR_TOO_LARGE"),
        ] {
            let head = u32::try_from(length).unwrap().to_be_bytes();
            assert_eq!(read(&head).unwrap_err().code(), code, "{length}");
        }
        let mut writer = FrameWriter::new(Vec::new(), DeviceProfile::EXTENDED);
        assert_eq!(writer.push(&vec![1; most + 1]).unwrap_err().code(), "ERR_TOO_LARGE");
        assert_eq!(writer.push(&[]).unwrap_err().code(), "ERR_CORRUPT");
    }

    #[test]
    fn a_frame_holds_one_grain_and_nothing_else() {
        let mut longer = blob("a");
        longer.push(0xc0);
        assert_eq!(read(&stream(&[longer])).unwrap_err().code(), "ERR_CORRUPT");
        assert_eq!(read(&stream(&[vec![2; 20]])).unwrap_err().code(), "ERR_VERSION");
    }

    #[test]
    fn what_follows_the_end_mark_is_left_to_others() {
        let mut bytes = stream(&[blob("a")]);
        bytes.extend(b"next");
        let mut reader = FrameReader::new(bytes.as_slice(), DecodeOptions::default());
        assert_eq!(reader.by_ref().filter(Result::is_ok).count(), 1);
        assert_eq!(reader.into_inner(), b"next");
    }
}
