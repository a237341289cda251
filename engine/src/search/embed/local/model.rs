//! A BERT model: its settings, its weights, and the vectors it makes of tokens. Must not know texts.

use candle_core::safetensors::load_buffer;
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{self, BertModel, HiddenAct, PositionEmbeddingType};
use serde::Deserialize;

use super::folder::Folder;
use super::recipe::Pooling;
use super::words::Tokens;
use crate::base::error::Result;

const CONFIG: &str = "config.json";
pub(super) const WEIGHTS: &str = "model.safetensors";
/// Most bytes of weights: the largest BERT models have a third of it.
const MOST_BYTES: u64 = 4 << 30;

/// A model in memory.
pub(super) struct Model(BertModel);

#[derive(Deserialize)]
struct Kind {
    model_type: String,
}

/// The settings of `config.json` that are used.
#[derive(Deserialize)]
pub(super) struct Settings {
    pub(super) vocab_size: usize,
    pub(super) hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    pub(super) max_position_embeddings: usize,
    type_vocab_size: usize,
    hidden_act: String,
    layer_norm_eps: f64,
    position_embedding_type: Option<String>,
    #[serde(default)]
    is_decoder: bool,
}

impl Settings {
    /// Reads and checks the settings, so that no memory is allocated for sizes out of range.
    pub(super) fn read(folder: &Folder) -> Result<Self> {
        let refused = |why: String| Err(folder.refused(CONFIG, why));
        let Kind { model_type } = folder.settings(CONFIG)?;
        if model_type != "bert" {
            return refused(format!(
                "it is a model of type {model_type:?}; only bert is known here"
            ));
        }
        let settings: Self = folder.settings(CONFIG)?;
        for (name, size, most) in settings.sizes() {
            if !(1..=most).contains(&size) {
                return refused(format!("{name} is {size}; from 1 to {most} is known here"));
            }
        }
        let (hidden, heads) = (settings.hidden_size, settings.num_attention_heads);
        if !hidden.is_multiple_of(heads) {
            return refused(format!("hidden_size {hidden} does not divide among {heads} heads"));
        }
        if settings.activation().is_none() {
            return refused(format!("hidden_act {:?} is not known here", settings.hidden_act));
        }
        if !(0.0..1.0).contains(&settings.layer_norm_eps) {
            return refused(format!("layer_norm_eps is {}", settings.layer_norm_eps));
        }
        match settings.position_embedding_type.as_deref() {
            None | Some("absolute") if !settings.is_decoder => Ok(settings),
            _ if settings.is_decoder => refused("it is a decoder".to_owned()),
            other => {
                let positions = other.unwrap_or_default();
                refused(format!("position_embedding_type {positions:?} is not known here"))
            }
        }
    }

    /// Name, value and maximum of each size.
    fn sizes(&self) -> [(&'static str, usize, usize); 7] {
        [
            ("vocab_size", self.vocab_size, 1 << 20),
            ("hidden_size", self.hidden_size, 4_096),
            ("num_hidden_layers", self.num_hidden_layers, 128),
            ("num_attention_heads", self.num_attention_heads, 256),
            ("intermediate_size", self.intermediate_size, 1 << 16),
            ("max_position_embeddings", self.max_position_embeddings, 2_048),
            ("type_vocab_size", self.type_vocab_size, 64),
        ]
    }

    fn activation(&self) -> Option<HiddenAct> {
        match self.hidden_act.as_str() {
            "gelu" => Some(HiddenAct::Gelu),
            "gelu_new" | "gelu_pytorch_tanh" => Some(HiddenAct::GeluApproximate),
            "relu" => Some(HiddenAct::Relu),
            _ => None,
        }
    }

    /// The settings in the form candle takes.
    fn config(&self) -> bert::Config {
        bert::Config {
            vocab_size: self.vocab_size,
            hidden_size: self.hidden_size,
            num_hidden_layers: self.num_hidden_layers,
            num_attention_heads: self.num_attention_heads,
            intermediate_size: self.intermediate_size,
            hidden_act: self.activation().unwrap_or(HiddenAct::Gelu),
            max_position_embeddings: self.max_position_embeddings,
            type_vocab_size: self.type_vocab_size,
            layer_norm_eps: self.layer_norm_eps,
            position_embedding_type: PositionEmbeddingType::Absolute,
            ..bert::Config::default()
        }
    }
}

impl Model {
    /// Reads the weights of a model with these settings.
    pub(super) fn read(folder: &Folder, settings: &Settings) -> Result<Self> {
        let bytes = folder.read(WEIGHTS, MOST_BYTES)?;
        let refused = |error: candle_core::Error| folder.refused(WEIGHTS, error);
        let tensors =
            folder.guarded(WEIGHTS, || load_buffer(&bytes, &Device::Cpu).map_err(refused))?;
        drop(bytes);
        // `position_ids` are integers; positions are numbered from 0 whether or not they are listed.
        let odd = tensors.iter().find(|(name, tensor)| {
            !is_of_floats(tensor.dtype()) && !name.ends_with("position_ids")
        });
        if let Some((name, tensor)) = odd {
            let why = format!("{name} is of {}, which is not known here", tensor.dtype().as_str());
            return Err(folder.refused(WEIGHTS, why));
        }
        let variables = VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu);
        let model = || BertModel::load(variables, &settings.config()).map_err(refused);
        folder.guarded(WEIGHTS, model).map(Self)
    }

    /// Embeds texts, each of which has tokens. The other texts of the batch change a vector only by the
    /// rounding of sums.
    pub(super) fn vectors(
        &self,
        texts: &[&Tokens],
        pooling: Pooling,
    ) -> candle_core::Result<Vec<Vec<f32>>> {
        let longest = texts.iter().map(|text| text.ids.len()).max().unwrap_or_default();
        let (mut ids, mut kinds, mut mask) = (Vec::new(), Vec::new(), Vec::new());
        for (at, text) in texts.iter().enumerate() {
            let end = (at + 1) * longest;
            mask.resize(mask.len() + text.ids.len(), 1_u32);
            ids.extend(&text.ids);
            kinds.extend(&text.kinds);
            for row in [&mut ids, &mut kinds, &mut mask] {
                row.resize(end, 0);
            }
        }
        let tensor = |row| Tensor::from_vec(row, (texts.len(), longest), &Device::Cpu);
        let states = self.0.forward(&tensor(ids)?, &tensor(kinds)?, Some(&tensor(mask)?))?;
        let pooled = texts.iter().enumerate().map(|(at, text)| {
            let states = states.get(at)?;
            match pooling {
                Pooling::Mean => states.narrow(0, 0, text.ids.len())?.mean(0)?.to_vec1(),
                Pooling::First => states.get(0)?.to_vec1(),
            }
        });
        pooled.collect()
    }
}

fn is_of_floats(kind: DType) -> bool {
    matches!(kind, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
}
