//! Grains as rows of a table, with a row of an audit log each, as one would keep them by hand.

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, Statement};

use super::Result;

/// A connection with two tables, and a prepared statement for both.
pub(crate) struct Plain {
    runtime: Runtime,
    client: Client,
    statement: Statement,
    schema: String,
    number: i64,
}

/// Bytes of a row of the audit log.
const AUDIT_BYTES: usize = 150;

impl Plain {
    pub(crate) fn connect(url: &str, schema: &str) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (client, statement) = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
            tokio::spawn(async move {
                let _ = connection.await;
            });
            let tables = format!(
                "CREATE TABLE IF NOT EXISTS {schema}.grain (address bytea PRIMARY KEY, body bytea NOT NULL);
                 CREATE TABLE IF NOT EXISTS {schema}.audit (entry bigserial PRIMARY KEY, body bytea NOT NULL)"
            );
            client.batch_execute(&tables).await?;
            let insert = format!(
                "WITH audited AS (INSERT INTO {schema}.audit (body) SELECT unnest($3::bytea[])) \
                 INSERT INTO {schema}.grain (address, body) SELECT * FROM unnest($1::bytea[], $2::bytea[])"
            );
            let statement = client.prepare(&insert).await?;
            Ok::<_, tokio_postgres::Error>((client, statement))
        })?;
        Ok(Self { runtime, client, statement, schema: schema.to_owned(), number: 0 })
    }

    /// Inserts grains in one statement.
    pub(crate) fn insert(&mut self, grains: &[Vec<u8>]) -> Result<()> {
        let addresses: Vec<[u8; 32]> = grains.iter().map(|grain| address(grain)).collect();
        let addresses: Vec<&[u8]> = addresses.iter().map(<[u8; 32]>::as_slice).collect();
        let bodies: Vec<&[u8]> = grains.iter().map(Vec::as_slice).collect();
        let audit = vec![vec![7_u8; AUDIT_BYTES]; grains.len()];
        self.number += 1;
        let Self { runtime, client, statement, .. } = self;
        runtime.block_on(client.execute(&*statement, &[&addresses, &bodies, &audit]))?;
        Ok(())
    }

    /// Removes what the program wrote.
    pub(crate) fn end(&mut self) -> Result<()> {
        let drop = format!("DROP SCHEMA {} CASCADE", self.schema);
        Ok(self.runtime.block_on(self.client.batch_execute(&drop))?)
    }
}

fn address(grain: &[u8]) -> [u8; 32] {
    *grainstore::ContentAddress::of(grain).as_bytes()
}
