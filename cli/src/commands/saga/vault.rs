//! `grain saga vault`: the credentials of an agent, which lie encrypted in the store.

use clap::{Args, Subcommand};
use grainstore::{EpochMs, Session};
use grainstore_interop::saga::{
    BoxPublicKey, Grant, LostWrap, NewItem, OldVersions, Permission, Secrets, ShownItem, Signer,
    Vault, VaultKey, VaultType, Wallet, store_vault, stored_vault, vault_of,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::key::{KeyOptions, SentWallet};
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::input::Source;
use crate::output::Output;
use crate::reach::{Reach, Told};
use crate::text::parse_time;

/// Bytes that are read of the fields of an item.
const MAX_SECRET_BYTES: usize = 1 << 20;

#[derive(Debug, Args)]
pub(super) struct VaultCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Args)]
struct Item {
    /// The item, by its id
    #[arg(value_name = "ITEM")]
    id: String,
    #[command(flatten)]
    key: KeyOptions,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the items, with their types and names, which are not encrypted; needs the key to know whose vault it is
    List {
        #[command(flatten)]
        key: KeyOptions,
    },
    /// Add an item: its fields are a JSON object in a file or on stdin
    Add {
        /// What it is: login, api-key, oauth-token, ssh-key, certificate, note or custom
        item_type: VaultType,
        /// Its name
        name: String,
        /// The fields
        #[arg(value_name = "FILE|-", default_value = "-")]
        fields: Source,
        #[command(flatten)]
        key: KeyOptions,
    },
    /// Print the fields of an item, decrypted
    Open {
        /// The item, by its id, or by its name if no other has it
        item: String,
        #[command(flatten)]
        key: KeyOptions,
    },
    /// Take an item out
    Remove(Item),
    /// Share items with somebody
    Share {
        /// The wallet of who gets it
        recipient: String,
        /// Their X25519 key, base64
        public_key: BoxPublicKey,
        /// What they may do: read, write or admin
        #[arg(long, default_value = "read")]
        permission: Permission,
        /// An item; may be given several times, without it all
        #[arg(long = "item", value_name = "ITEM")]
        items: Vec<String>,
        /// When it ends
        #[arg(long, value_name = "TIME", value_parser = parse_time)]
        until: Option<EpochMs>,
        #[command(flatten)]
        key: KeyOptions,
    },
    /// End what is shared with somebody, and encrypt it anew
    Revoke {
        /// Their wallet
        recipient: String,
        #[command(flatten)]
        key: KeyOptions,
    },
    /// Encrypt everything anew
    Rotate {
        #[command(flatten)]
        key: KeyOptions,
    },
}

/// A vault that is open for a command.
struct Opened {
    session: Session,
    agent: Wallet,
    key: VaultKey,
    vault: Vault,
}

impl Opened {
    /// The vault that the wallet has.
    fn of(key: &KeyOptions, session: Session, context: &mut Context<'_>) -> Result<Self> {
        Self::with(key, session, context, vault_of)
    }

    /// The vault that the wallet has, or a new one.
    fn of_or_new(key: &KeyOptions, session: Session, context: &mut Context<'_>) -> Result<Self> {
        Self::with(key, session, context, |session, agent| {
            stored_vault(session, agent)?.map_or_else(|| Vault::create(session.now()), Ok)
        })
    }

    fn with(
        key: &KeyOptions,
        session: Session,
        context: &mut Context<'_>,
        vault: impl FnOnce(&Session, &Wallet) -> grainstore_interop::Result<Vault>,
    ) -> Result<Self> {
        let agent = key.signer(&mut context.output)?.wallet().clone();
        let key = key.vault_key(&mut context.output)?;
        let vault = vault(&session, &agent)?;
        Ok(Self { session, agent, key, vault })
    }

    fn keep(&self) -> Result<()> {
        store_vault(&self.session, &self.agent, &self.vault, OldVersions::Erase)?;
        Ok(())
    }
}

impl VaultCommand {
    pub(super) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let reach = context.reach()?;
        match reach.session() {
            Some(session) => self.what.run(session, context),
            None => self.what.relayed(&reach, context),
        }
    }
}

impl What {
    fn run(self, session: Session, context: &mut Context<'_>) -> Result<()> {
        match self {
            Self::List { key } => {
                let opened = Opened::of(&key, session, context)?;
                let shown: Vec<_> = opened.vault.shown_items().collect();
                let ids: Vec<_> = shown.iter().map(|item| &item.id).collect();
                let answer =
                    json!({ "version": opened.vault.version(), "items": ids, "shown": shown });
                context.output.answer(&answer, |output| write_items(&shown, output))
            }
            Self::Add { item_type, name, fields, key } => {
                let fields = Zeroizing::new(fields.read(MAX_SECRET_BYTES, &mut context.output)?);
                let secrets = Secrets::from_json(fields.as_slice())?;
                let mut opened = Opened::of_or_new(&key, session, context)?;
                let item = NewItem::new(item_type, name, secrets);
                let id = opened.vault.add(item, &opened.key, opened.session.now())?;
                opened.keep()?;
                context.output.answer(&json!({ "item": id }), |output| output.line(&id))
            }
            Self::Open { item, key } => {
                let opened = Opened::of(&key, session, context)?;
                let id = opened.vault.id_of(&item)?;
                let secrets = opened.vault.open(&id, &opened.key)?;
                context.output.line(secrets.as_json())
            }
            Self::Remove(Item { id, key }) => {
                let mut opened = Opened::of(&key, session, context)?;
                opened.vault.remove(&id, opened.session.now())?;
                opened.keep()
            }
            Self::Share { recipient, public_key, permission, items, until, key } => {
                let mut opened = Opened::of(&key, session, context)?;
                let grant = Grant {
                    recipient,
                    key: public_key,
                    permission,
                    items,
                    granted_by: opened.agent.address().to_owned(),
                    expires_at: until,
                };
                opened.vault.share(&grant, &opened.key, opened.session.now())?;
                opened.keep()
            }
            Self::Revoke { recipient, key } => {
                let mut opened = Opened::of(&key, session, context)?;
                let lost = opened.vault.revoke(&recipient, &opened.key, opened.session.now())?;
                opened.keep()?;
                tell_lost(&lost, context)
            }
            Self::Rotate { key } => {
                let mut opened = Opened::of(&key, session, context)?;
                let now = opened.session.now();
                let lost = opened.vault.rotate(&opened.key, &opened.key, now)?;
                opened.keep()?;
                tell_lost(&lost, context)
            }
        }
    }
}

impl What {
    /// Has the process that has the store open do it.
    fn relayed(self, reach: &Reach, context: &mut Context<'_>) -> Result<()> {
        let (key, asked) = match &self {
            Self::List { key } => (key, Do::List {}),
            Self::Add { item_type, name, fields, key } => {
                let fields = Zeroizing::new(fields.read(MAX_SECRET_BYTES, &mut context.output)?);
                let secrets = Secrets::from_json(fields.as_slice())?;
                let fields = RawValue::from_string(secrets.as_json().to_owned())?;
                (key, Do::Add { item_type: item_type.name(), name, fields })
            }
            Self::Open { item, key } => (key, Do::Open { item }),
            Self::Remove(Item { id, key }) => (key, Do::Remove { item: id }),
            Self::Share { recipient, public_key, permission, items, until, key } => {
                let (public_key, permission) = (public_key.to_base64(), permission.name());
                (key, Do::Share { recipient, public_key, permission, items, until: *until })
            }
            Self::Revoke { recipient, key } => (key, Do::Revoke { recipient }),
            Self::Rotate { key } => (key, Do::Rotate {}),
        };
        let call = VaultCall { wallet: key.sent(&mut context.output)?, asked };
        self.tell(&reach.call("saga_vault", &call)?, context)
    }

    /// Prints what another process has answered.
    fn tell(&self, told: &Told, context: &mut Context<'_>) -> Result<()> {
        let answer: Answer = told.read()?;
        match self {
            Self::List { .. } => {
                let Answer { version, items, shown, .. } = answer;
                let json = json!({ "version": version, "items": items, "shown": shown });
                context.output.answer(&json, |output| write_items(&shown, output))
            }
            Self::Add { .. } => {
                let id = answer.added.unwrap_or_default();
                context.output.answer(&json!({ "item": id }), |output| output.line(&id))
            }
            Self::Open { .. } => match &answer.fields {
                Some(fields) => context.output.line(fields.json()),
                None => Ok(()),
            },
            Self::Remove(_) | Self::Share { .. } => Ok(()),
            Self::Revoke { .. } | Self::Rotate { .. } => tell_lost(&answer.lost, context),
        }
    }
}

fn write_items(shown: &[ShownItem], output: &mut Output<'_>) -> Result<()> {
    shown.iter().try_for_each(|ShownItem { id, item_type, name, .. }| {
        output.line(&format!("{id}  {item_type:<11}  {}", name.as_deref().unwrap_or("-")))
    })
}

/// The parameters of `saga_vault`.
#[derive(Serialize)]
struct VaultCall<'c> {
    wallet: SentWallet<'c>,
    #[serde(rename = "do")]
    asked: Do<'c>,
}

/// What is done.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Do<'c> {
    List {},
    Add {
        #[serde(rename = "type")]
        item_type: &'static str,
        name: &'c str,
        fields: Box<RawValue>,
    },
    Open {
        item: &'c str,
    },
    Remove {
        item: &'c str,
    },
    Share {
        recipient: &'c str,
        public_key: String,
        permission: &'static str,
        items: &'c [String],
        until: Option<EpochMs>,
    },
    Revoke {
        recipient: &'c str,
    },
    Rotate {},
}

/// The answer of `saga_vault`.
#[derive(Deserialize)]
struct Answer {
    version: u64,
    items: Vec<String>,
    #[serde(default)]
    shown: Vec<ShownItem>,
    added: Option<String>,
    fields: Option<Told>,
    #[serde(default)]
    lost: Vec<LostWrap>,
}

/// Tells of items that somebody can open no longer, since their key was not there to encrypt with.
fn tell_lost(lost: &[LostWrap], context: &mut Context<'_>) -> Result<()> {
    for wrap in lost {
        context.output.note(&format!("{} cannot open {} any longer", wrap.recipient, wrap.item));
    }
    match lost.is_empty() {
        true => Ok(()),
        false => Err(Error::new(
            Code::Key,
            "some shares could not be made anew",
            "share these items with their recipients again",
        )),
    }
}
