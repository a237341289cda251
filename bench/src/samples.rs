//! Made-up grains of the ten types, in plain English: what the dictionary of the log is trained on.
//!
//! Nobody said any of it. A dictionary of what people did say would keep their words after they were erased.

use grainstore_format::{Blob, Encoding, Grain};
use serde_json::{Value, json};

use crate::Error;

const PEOPLE: [&str; 24] = [
    "Alice",
    "Ben",
    "Carla",
    "David",
    "Elena",
    "Frank",
    "Grace",
    "Henry",
    "Irene",
    "James",
    "Karen",
    "Lucas",
    "Maria",
    "Nathan",
    "Olivia",
    "Paul",
    "Rachel",
    "Sam",
    "Tina",
    "Victor",
    "Wendy",
    "the user",
    "the team",
    "the customer",
];
const RELATIONS: [&str; 20] = [
    "prefers",
    "likes",
    "works_at",
    "lives_in",
    "mg:knows",
    "mg:prefers",
    "mg:is",
    "mg:has",
    "owns",
    "plays",
    "is_married_to",
    "wants_to_visit",
    "is_allergic_to",
    "speaks",
    "studied",
    "mg:located_in",
    "believes",
    "mg:related_to",
    "uses",
    "has_deadline",
];
const OBJECTS: [&str; 28] = [
    "coffee in the morning",
    "a small apartment near the station",
    "dark mode in every editor",
    "New York",
    "the hospital as a nurse",
    "vegetarian food",
    "two cats and a dog",
    "piano lessons on Thursday",
    "the project with the new database",
    "short answers without lists",
    "a meeting at nine o'clock",
    "the blue car",
    "Spanish and French",
    "running in the park",
    "peanuts",
    "hiking in the mountains",
    "the quarterly report",
    "a degree in computer science",
    "her sister's wedding in June",
    "watching movies with friends",
    "http://www.example.com/",
    "an email about the invoice",
    "support ticket 4711",
    "London",
    "a family of four",
    "health insurance",
    "software engineer",
    "a birthday party next weekend",
];
const OPENINGS: [&str; 30] = [
    "Hey",
    "Hi there",
    "That sounds great",
    "Wow, that's amazing",
    "Thanks so much",
    "I'm so glad to hear that",
    "Yeah, I know what you mean",
    "Oh, really",
    "Good question",
    "I've been thinking about it",
    "Congratulations",
    "No problem",
    "I'm sorry to hear that",
    "Of course",
    "You're right",
    "It was so much fun",
    "Long time no see",
    "That's awesome",
    "I totally agree",
    "Sure",
    "By the way",
    "Absolutely",
    "How have you been",
    "What's up",
    "It's been a while",
    "Let me know",
    "I can't wait",
    "I really appreciate it",
    "To be honest",
    "Well",
];
const ACTIONS: [&str; 32] = [
    "I just started a new job and I'm excited about it",
    "we went to the beach with the kids last weekend",
    "I've been working on a painting since last month",
    "she told me that they are moving to another city",
    "I'm going to take a class to learn something new",
    "he wants to spend more time with his family",
    "it has been a really tough week for all of us",
    "we should meet for lunch sometime soon",
    "they have been very supportive through everything",
    "I finally finished reading the book you recommended",
    "my friends and I are planning a trip for the summer",
    "it makes me feel happy and a little bit nervous",
    "I would love to see some pictures of it",
    "that must have been an incredible experience for you",
    "I'm thinking about starting my own business next year",
    "music always helps me relax after a long day",
    "we had dinner together and talked about the future",
    "I took this photo yesterday when we were out",
    "it's important to take care of yourself",
    "there is a new restaurant that I want to try",
    "I used to play the guitar when I was younger",
    "you have done such a great job with the garden",
    "the doctor said that everything will be fine",
    "I need to buy a present for my mother's birthday",
    "we are trying to make a difference in our community",
    "I couldn't have done it without your help",
    "he has not been feeling well these days",
    "the game last night was so good that we stayed up late",
    "please remind me to call the bank tomorrow morning",
    "could you send me the notes of the last meeting",
    "the build failed because a test timed out",
    "the customer asked for a refund of the order",
];
const ENDINGS: [&str; 20] = [
    "What about you?",
    "How are you doing?",
    "What do you think?",
    "I hope it goes well!",
    "Keep it up!",
    "Have you ever tried that?",
    "It means a lot to me.",
    "Let me know if you need anything.",
    "Take care!",
    "I'm really looking forward to it.",
    "How did it go?",
    "Any plans for the weekend?",
    "It was worth it.",
    "Do you have any advice?",
    "See you soon!",
    "Tell me more about it.",
    "I'm proud of you!",
    "We'll see what happens.",
    "That would be nice.",
    "When did that happen?",
];
const NAMESPACES: [&str; 6] =
    ["shared", "work", "chat", "personal", "agent:notes", "support:tickets"];

/// Numbers that look like chance and are the same every time: splitmix64.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        let at = usize::try_from(self.roll()).unwrap_or_default() % texts.len();
        texts.get(at).copied().unwrap_or_default()
    }

    fn sentence(&mut self) -> String {
        let (opening, action) = (self.of(&OPENINGS), self.of(&ACTIONS));
        match self.below(3) {
            0 => format!(
                "{opening}, {}! {} {}",
                self.of(&PEOPLE),
                capital(action),
                self.of(&ENDINGS)
            ),
            1 => format!("{opening}! {}, and {}.", capital(action), self.of(&ACTIONS)),
            _ => format!("{}. {}", capital(action), self.of(&ENDINGS)),
        }
    }

    fn hex(&mut self) -> String {
        (0..4).map(|_| format!("{:016x}", self.roll())).collect()
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The `n`-th sample, encoded.
///
/// # Errors
/// Never for the grains made here; the format's own otherwise.
pub fn sample(n: u64) -> Result<Blob, Error> {
    let mut dice = Dice(n);
    let mut fields = own_fields(n, &mut dice);
    if let Value::Object(fields) = &mut fields {
        let at = 1_690_000_000_000_u64 + dice.below(80_000_000_000);
        fields.insert("created_at".to_owned(), json!(at));
        fields.insert("namespace".to_owned(), json!(dice.of(&NAMESPACES)));
        if dice.one_in(2) {
            fields.insert("user_id".to_owned(), json!(dice.of(&PEOPLE).to_lowercase()));
        }
        if dice.one_in(3) {
            fields.insert("importance".to_owned(), json!(dice.below(10) as f64 / 10.0));
        }
        if dice.one_in(3) {
            let tags = ["preference", "family", "work", "health", "travel", "reg:gdpr", "phi:name"];
            fields.insert("structural_tags".to_owned(), json!([dice.of(&tags), dice.of(&tags)]));
        }
        if dice.one_in(4) {
            let source = ["user_explicit", "agent_inferred", "consolidated", "imported", "system"];
            fields.insert("source_type".to_owned(), json!(dice.of(&source)));
        }
        if dice.one_in(5) {
            let letters: String = dice.hex().chars().take(44).collect();
            let did = format!("did:key:z6Mk{letters}");
            fields.insert("author_did".to_owned(), json!(did));
        }
        if dice.one_in(6) {
            fields.insert("derived_from".to_owned(), json!([dice.hex()]));
        }
    }
    Ok(Grain::from_json(&fields.to_string())?.encode(Encoding::MessagePack)?)
}

/// The fields that its type has. Conversation is what agents keep most of.
fn own_fields(n: u64, dice: &mut Dice) -> Value {
    let hundredths = |dice: &mut Dice| dice.below(101) as f64 / 100.0;
    match n % 14 {
        0..=2 => json!({
            "type": "belief", "subject": dice.of(&PEOPLE), "relation": dice.of(&RELATIONS),
            "object": dice.of(&OBJECTS), "confidence": hundredths(dice),
        }),
        3..=5 => json!({
            "type": "event", "role": dice.of(&["user", "assistant", "tool"]), "content": dice.sentence(),
            "session_id": format!("session-{}", dice.below(100)),
        }),
        6..=7 => json!({
            "type": "observation", "observer_id": dice.of(&PEOPLE),
            "observer_type": dice.of(&["human", "llm", "agent", "sensor"]), "subject": dice.of(&PEOPLE),
            "object": dice.sentence(), "session_id": format!("session_{}", dice.below(100)),
        }),
        8 => json!({
            "type": "state", "context": {
                "task": dice.of(&OBJECTS), "plan": [dice.of(&ACTIONS), dice.of(&ACTIONS)],
                "status": dice.of(&["active", "done", "waiting"]),
            },
        }),
        9 => json!({
            "type": "workflow", "trigger": dice.of(&OBJECTS), "steps": [dice.of(&ACTIONS), dice.of(&ACTIONS)],
        }),
        10 => json!({
            "type": "action", "tool_name": dice.of(&["search", "read_file", "send_email", "query"]),
            "input": { "query": dice.of(&OBJECTS), "limit": dice.below(50) },
            "content": dice.sentence(), "is_error": dice.one_in(8), "duration_ms": dice.below(5000),
        }),
        11 => json!({
            "type": "goal", "subject": dice.of(&PEOPLE), "description": dice.of(&ACTIONS),
            "goal_state": dice.of(&["active", "satisfied", "failed", "suspended"]),
            "criteria": [dice.of(&OBJECTS)], "priority": 1 + dice.below(5),
        }),
        12 => json!({
            "type": "reasoning", "premises": [dice.hex()], "conclusion": dice.sentence(),
            "inference_method": dice.of(&["deductive", "inductive", "abductive"]),
            "confidence": hundredths(dice),
        }),
        _ if dice.one_in(2) => json!({
            "type": "consensus", "participating_observers": [dice.of(&PEOPLE), dice.of(&PEOPLE)],
            "threshold": 2, "agreement_count": 2, "dissent_count": 0,
            "subject": dice.of(&PEOPLE), "object": dice.of(&OBJECTS),
        }),
        _ => json!({
            "type": "consent", "subject_did": format!("did:web:{}.example", dice.of(&PEOPLE).to_lowercase().replace(' ', "-")),
            "grantee_did": "did:web:agent.example", "scope": ["memory", "analytics"],
            "is_withdrawal": false, "basis": "explicit_consent",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_of_every_type_and_the_same_every_time() {
        let mut seen = std::collections::BTreeSet::new();
        for n in 0..200 {
            let blob = sample(n).unwrap();
            assert_eq!(blob.address(), sample(n).unwrap().address());
            seen.insert(format!("{:?}", Grain::decode(blob.bytes()).unwrap().grain_type()));
        }
        assert_eq!(seen.len(), 10, "{seen:?}");
    }
}
