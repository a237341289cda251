//! `grain frames`: grains in a stream for transport (OMS 11.6), without a store.

use clap::{Args, Subcommand};
use data_encoding::BASE64;
use grainstore::Grain;
use grainstore::format::container::{ContainerEntry, FrameReader, FrameWriter};
use grainstore::format::{DecodeOptions, DeviceProfile, Encoding};
use grainstore_rpc::{FORMAT_VERSION, Profile};
use serde_json::json;

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::input::{MAX_COSE_BYTES, MAX_JSON_BYTES, Source, to_text};
use crate::lines::{Document, Documents};
use crate::names::{PROFILES, named};

/// The first bytes of what is one grain: a blob, and a COSE_Sign1 with and without its tag.
const BINARY_STARTS: [u8; 3] = [FORMAT_VERSION, 0xd2, 0x84];

/// Put grains into frames, or take them out: a stream for transport, with no store
///
/// `grain put --frames` stores such a stream.
#[derive(Debug, Args)]
pub(crate) struct Frames {
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// Write the grains of some files as frames to stdout
    Pack(Pack),
    /// Print the grains of frames as JSON, one a line; with --json their addresses and bytes too
    Unpack(Unpack),
}

#[derive(Debug, Args)]
struct Pack {
    /// What to read, in this order: JSON or JSON Lines, one raw blob, or one signed grain; - for stdin
    #[arg(value_name = "FILE|-", default_value = "-")]
    sources: Vec<Source>,
    /// The class of devices whose limits each grain must keep to (OMS 18)
    #[arg(long, value_parser = named::<Profile>(PROFILES), default_value = "extended")]
    profile: Profile,
}

#[derive(Debug, Args)]
struct Unpack {
    /// What to read; - or nothing for stdin
    #[arg(value_name = "FILE|-", default_value = "-")]
    source: Source,
    /// The class of devices whose limits each grain must keep to (OMS 18)
    #[arg(long, value_parser = named::<Profile>(PROFILES), default_value = "extended")]
    profile: Profile,
}

impl Frames {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        match self.act {
            Act::Pack(pack) => pack.run(context),
            Act::Unpack(unpack) => unpack.run(context),
        }
    }
}

impl Pack {
    fn run(self, context: &mut Context<'_>) -> Result<()> {
        let profile = self.profile.limits();
        let mut frames = FrameWriter::new(Vec::new(), profile);
        for source in &self.sources {
            // All of it is held until all is checked: a stream without its end would be taken for a broken one.
            let named = |error: Error| error.in_context(&source.to_string());
            for bytes in grains(source, context)? {
                let options = DecodeOptions { profile, ..DecodeOptions::default() };
                let entry = ContainerEntry::read(bytes, &options).map_err(|e| named(e.into()))?;
                frames.push(entry.bytes()).map_err(|error| named(error.into()))?;
            }
        }
        context.output.bytes(&frames.finish()?)?;
        context.output.flush()
    }
}

/// The bytes of the grains of a source.
fn grains(source: &Source, context: &mut Context<'_>) -> Result<Vec<Vec<u8>>> {
    let mut reader = source.open(&mut context.output)?;
    let start = reader.fill_buf().map_err(|error| source.read_error(&error))?.first().copied();
    if start.is_some_and(|first| BINARY_STARTS.contains(&first)) {
        let mut bytes = Vec::new();
        let room = u64::try_from(MAX_COSE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
        let read = std::io::Read::read_to_end(&mut std::io::Read::take(reader, room), &mut bytes);
        read.map_err(|error| source.read_error(&error))?;
        return Ok(vec![bytes]);
    }
    let mut documents = Documents::new(reader, MAX_JSON_BYTES);
    let mut grains = Vec::new();
    while let Some(document) = documents.next().map_err(|error| source.read_error(&error))? {
        let (line, json) = match document {
            Document::Text(line, json) => (line, json),
            Document::TooLong(line) => {
                let message = format!("line {line}: a grain of more than {MAX_JSON_BYTES} bytes");
                return Err(Error::new(Code::TooLarge, message, "a blob has at most 1 MiB"));
            }
        };
        let encode = |json| Ok(Grain::from_json(&to_text(json)?)?.encode(Encoding::default())?);
        let blob =
            encode(json).map_err(|error: Error| error.in_context(&format!("line {line}")))?;
        grains.push(blob.into_bytes());
    }
    Ok(grains)
}

impl Unpack {
    fn run(self, context: &mut Context<'_>) -> Result<()> {
        let reader = self.source.open(&mut context.output)?;
        let output = &mut context.output;
        for entry in read(reader, self.profile.limits()) {
            let entry = entry?;
            if !output.is_json() {
                output.json_line(entry.grain())?;
                continue;
            }
            let form = if entry.envelope().is_some() { "cose" } else { "blob" };
            let bytes = BASE64.encode(entry.bytes());
            output.json_line(
                &json!({ "address": entry.address(), form: bytes, "grain": entry.grain() }),
            )?;
        }
        Ok(())
    }
}

/// What to do about a first frame of a length that no grain has: other bytes begin with no length.
const NO_FRAMES: &str = "if these are no frames, `grain frames pack` makes some, and `grain put` takes grains as they \
    are; if they are, the grain is larger than its profile allows";

/// Reads frames, each error with the number of its frame.
pub(super) fn read(
    input: impl std::io::Read,
    profile: DeviceProfile,
) -> impl Iterator<Item = Result<ContainerEntry>> {
    let options = DecodeOptions { profile, ..DecodeOptions::default() };
    FrameReader::new(input, options).enumerate().map(|(at, entry)| {
        entry.map_err(|error| {
            let error = Error::from(error).in_context(&format!("frame {at}"));
            match at {
                0 => error.with_hint_for(Code::TooLarge.name(), NO_FRAMES),
                _ => error,
            }
        })
    })
}
