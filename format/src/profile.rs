//! Device profiles: how large and how deep a grain may be (OMS 3.3, 4.10, section 18).

use crate::error::{Error, ErrorKind, Result};

/// Limits of a class of devices, checked before memory is allocated.
///
/// ```
/// use grainstore_format::DeviceProfile;
///
/// assert_eq!(DeviceProfile::default(), DeviceProfile::EXTENDED);
/// assert!(DeviceProfile::LIGHTWEIGHT.check_size(512).is_ok());
/// let refused = DeviceProfile::LIGHTWEIGHT.check_size(513);
/// assert!(refused.is_err_and(|error| error.code() == "ERR_TOO_LARGE"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceProfile {
    /// The size of the largest blob in bytes, header included.
    pub max_blob_bytes: usize,
    /// The deepest nesting allowed. The payload map is depth 1.
    pub max_depth: usize,
    /// `true` if only the fields of [`DeviceProfile::LIGHTWEIGHT_FIELDS`] may occur.
    pub lightweight_fields_only: bool,
}

impl DeviceProfile {
    /// Servers and desktops: 1 MiB, 32 levels (18.1). The default.
    pub const EXTENDED: Self =
        Self { max_blob_bytes: 1 << 20, max_depth: 32, lightweight_fields_only: false };
    /// Phones and single-board computers: 32 KiB, 16 levels (18.2).
    pub const STANDARD: Self =
        Self { max_blob_bytes: 32 << 10, max_depth: 16, lightweight_fields_only: false };
    /// Microcontrollers: 512 bytes, 8 levels, seven fields (18.3).
    pub const LIGHTWEIGHT: Self =
        Self { max_blob_bytes: 512, max_depth: 8, lightweight_fields_only: true };

    /// The fields a lightweight grain may carry.
    pub const LIGHTWEIGHT_FIELDS: [&'static str; 7] =
        ["type", "subject", "relation", "object", "confidence", "created_at", "namespace"];

    /// Checks the size of a blob.
    ///
    /// # Errors
    /// `ERR_TOO_LARGE`.
    pub fn check_size(&self, blob_bytes: usize) -> Result<()> {
        if blob_bytes <= self.max_blob_bytes {
            return Ok(());
        }
        let message = format!(
            "a blob of {blob_bytes} bytes is over the profile's {} bytes",
            self.max_blob_bytes
        );
        Err(Error::new(ErrorKind::TooLarge, message))
    }
}

impl Default for DeviceProfile {
    fn default() -> Self {
        Self::EXTENDED
    }
}
