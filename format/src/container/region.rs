//! The region of grains as one stream of inflated bytes, for each compression.

use std::io::{self, BufRead, BufReader, Read};

use lz4_flex::frame::FrameDecoder;

use super::layout::{Compression, ContainerHeader};
use super::source::RangeReader;
use super::{ReadAt, io as failed, structure_error};
use crate::error::{Error, ErrorKind, Result};

/// Bytes per read.
const BLOCK_BYTES: usize = 64 << 10;

/// A reader of a region from its start. Its memory use depends on the frame, not on the length: a zstd
/// window of at most 128 MiB (8 MiB at the level of the standard), or two lz4 blocks.
pub(super) enum RegionReader<'s, S: ReadAt + ?Sized> {
    Plain(BufReader<RangeReader<'s, S>>),
    Zstd(Box<zstd::Decoder<'static, CountingInput<'s, S>>>),
    Lz4(Box<FrameDecoder<CountingInput<'s, S>>>),
}

impl<S: ReadAt + ?Sized> std::fmt::Debug for RegionReader<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "Region(none)",
            Self::Zstd(_) => "Region(zstd)",
            Self::Lz4(_) => "Region(lz4)",
        })
    }
}

/// The extent of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RegionExtent {
    /// The length of the grains in bytes, inflated.
    pub(super) inflated: u64,
    /// The offset in the file at which the region ends.
    pub(super) end: u64,
}

impl<'s, S: ReadAt + ?Sized> RegionReader<'s, S> {
    /// Opens the region between the offsets and `to`.
    ///
    /// # Errors
    /// `ERR_CORRUPT` if no frame of the announced kind begins there; `ERR_IO`.
    pub(super) fn open(source: &'s S, head: &ContainerHeader, to: u64) -> Result<Self> {
        let from = head.region_start();
        let input = BufReader::with_capacity(BLOCK_BYTES, RangeReader::new(source, from, to));
        let magic: [u8; 4] = match head.compression {
            Compression::None => return Ok(Self::Plain(input)),
            Compression::Zstd => [0x28, 0xb5, 0x2f, 0xfd],
            Compression::Lz4 => [0x04, 0x22, 0x4d, 0x18],
        };
        let mut input = CountingInput { input, consumed: 0, hit_end: false, io_failed: false };
        // The decoders also accept empty and skippable frames and legacy formats, before or instead of
        // a frame.
        if input.fill_buf().map_err(|error| failed(&error))?.first_chunk() != Some(&magic) {
            let message = format!("no {} frame begins here", head.compression.name());
            return Err(structure_error(message, format!("grains, byte {from}")));
        }
        if head.compression == Compression::Lz4 {
            return Ok(Self::Lz4(Box::new(FrameDecoder::new(input))));
        }
        let decoder = zstd::Decoder::with_buffer(input).map_err(|error| failed(&error))?;
        Ok(Self::Zstd(Box::new(decoder.single_frame())))
    }

    /// Inflates a compressed region to its end to measure it, discarding the bytes.
    ///
    /// # Errors
    /// `ERR_TOO_LARGE` as soon as it inflates to more than `most` bytes; `ERR_CORRUPT`; `ERR_IO`.
    pub(super) fn measure(mut self, head: &ContainerHeader, most: u64) -> Result<RegionExtent> {
        let mut buffer = vec![0; BLOCK_BYTES];
        let mut inflated = 0_u64;
        loop {
            let read = match self.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.classify_error(&error)),
            };
            inflated += read;
            if inflated > most {
                let message = format!("the grains inflate to more than {most} bytes");
                return Err(Error::new(ErrorKind::TooLarge, message).at("grains"));
            }
        }
        let (taken, dry) =
            self.counting_input().map_or((0, true), |input| (input.consumed, input.hit_end));
        if dry {
            return Err(structure_error("the compressed frame ends too early", "grains"));
        }
        Ok(RegionExtent { inflated, end: head.region_start() + taken })
    }

    /// Converts a read error: `ERR_IO` if the storage failed, `ERR_CORRUPT` if the frame is broken or
    /// ends early.
    pub(super) fn classify_error(&self, error: &io::Error) -> Error {
        match self.counting_input() {
            Some(input) if !input.io_failed => {
                structure_error(format!("the compressed frame is broken: {error}"), "grains")
            }
            None if error.kind() == io::ErrorKind::UnexpectedEof => {
                structure_error("the grains end too early", "grains")
            }
            _ => failed(error),
        }
    }

    fn counting_input(&self) -> Option<&CountingInput<'s, S>> {
        match self {
            Self::Plain(_) => None,
            Self::Zstd(decoder) => Some(decoder.get_ref()),
            Self::Lz4(decoder) => Some(decoder.get_ref()),
        }
    }
}

impl<S: ReadAt + ?Sized> Read for RegionReader<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(buffer),
            Self::Zstd(decoder) => decoder.read(buffer),
            Self::Lz4(decoder) => decoder.read(buffer),
        }
    }
}

/// Input that counts the bytes a decoder consumed and records how it ended.
pub(super) struct CountingInput<'s, S: ?Sized> {
    input: BufReader<RangeReader<'s, S>>,
    consumed: u64,
    /// `true` if the decoder asked for more than there is.
    hit_end: bool,
    /// `true` if the storage failed.
    io_failed: bool,
}

impl<S: ReadAt + ?Sized> BufRead for CountingInput<'_, S> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let Self { input, hit_end: dry, io_failed: failed, .. } = self;
        let filled = input.fill_buf();
        *failed |= filled.is_err();
        *dry |= filled.as_ref().is_ok_and(|bytes| bytes.is_empty());
        filled
    }

    fn consume(&mut self, bytes: usize) {
        self.consumed += bytes as u64;
        self.input.consume(bytes);
    }
}

impl<S: ReadAt + ?Sized> Read for CountingInput<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut available = self.fill_buf()?;
        let read = available.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}
