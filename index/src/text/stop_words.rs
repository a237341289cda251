//! Stop words: question words, auxiliaries, articles, pronouns and conjunctions. Prepositions, negations,
//! quantities and adverbs are not stop words: they have some meaning, and their frequency already lowers
//! their idf. The lists are normalised as in the index, but not stemmed. Knows nothing of queries.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::language::Language;

/// Returns `true` if a normalised word is a stop word.
pub(super) fn is_stop_word(language: Language, word: &str) -> bool {
    KNOWN.contains(&(language, word))
}

static KNOWN: LazyLock<HashSet<(Language, &'static str)>> = LazyLock::new(|| {
    let words = |(language, words): &(Language, &'static str)| {
        let language = *language;
        words.split_ascii_whitespace().map(move |word| (language, word))
    };
    STOP_WORDS.iter().flat_map(words).collect()
});

/// Ascending by word, without duplicates.
#[rustfmt::skip]
static STOP_WORDS: [(Language, &str); 18] = [
    (Language::Arabic, "\
        اذا الا التي الذي الذين اللذان اللواتي الي ان انا انت انتم او اي اين به بها تلك ثم حتي \
        حيث ذاك ذلك سوف علي عليه عليها عنه عنها فيه فيها كان كانت كم كما كيف لان لكن لما لماذا \
        له لها لهم ما ماذا متي منه منها نحن هؤلاء هذا هذه هل هم هن هو هي و يا"),
    (Language::Danish, "\
        at blev blive bliver da de dem den denne der deres det dette dig din dine disse dit dog \
        du eller en end er et få ham han hans har havde have hende hendes hun hvad hvem hvilke \
        hvilken hvilket hvis hvor hvordan hvorfor hvornår i jeg jer jeres kan kunne man men mig \
        min mine mit mod når og også os sig sin sine sit skal skulle som var vi vil ville vor \
        vore være været"),
    (Language::Dutch, "\
        ben bent dat de der deze die dit doen een en geen geweest haar had hadden heb hebben \
        heeft hem het hij hoe hoeveel hun ik in is je jij jou jouw jullie kan kon kunnen maar me \
        men mij mijn moet moeten of ons onze u uw waar waarom wanneer want waren was wat we wel \
        welk welke werd wezen wie wiens wij wil worden wordt zal ze zich zij zijn zou"),
    (Language::English, "\
        a am an and are arent be been being but can cant could couldnt did didnt do does doesnt \
        doing done dont had hadnt has hasnt have havent having he her here hers herself hes him \
        himself his how hows i id if ill im is isnt it its itself ive may me might mine must my \
        myself or our ours ourselves shall she shes should shouldnt so than that thats the their \
        theirs them themselves there these they theyd theyll theyre theyve this those us was \
        wasnt we wed were werent weve what whatever whats when whenever whens where wheres \
        wherever which whichever who whoever whom whos whose why whys will wont would wouldnt \
        you youd youll your youre yours yourself yourselves youve"),
    (Language::Finnish, "\
        ei eivät emme en et ette että he heidän heille heitä hän häneen hänelle hänen hänet \
        häntä ja johon joiden joka jonka jos jossa jota jotka keiden keitä ken kenelle kenen \
        ketkä ketä koska kuin kuinka kuka kun me meidän meille meitä mihin miksi mikä mikään \
        millainen milloin minkä minua minulla minulle minun minut minä missä mistä miten mitkä \
        mitä mutta myös ne niiden niin niissä niitä nuo nyt näiden näitä nämä ole olen olet oli \
        olin olivat olla olleet ollut on ovat se sekä sen siihen siitä sille sinua sinulle sinun \
        sinut sinä sitä tai te teidän teille teitä tuo tuon tämä tämän tässä tätä vai vaikka"),
    (Language::French, "\
        ai aie as au aux avaient avais avait avez avoir avons c ca car ce ceci cela celle celles \
        celui ces cet cette ceux ci combien comment d de des dont du elle elles en es est et \
        etaient etais etait ete etre eu eux il ils j je l la laquelle le lequel les lesquels \
        leur leurs lui m ma mais me mes moi mon n ni nos notre nous on ont ou peut pourquoi \
        quand que quel quelle quelles quels qui quoi s sa se sera ses si son sont t ta te tes \
        toi ton tu un une vos votre vous y"),
    (Language::German, "\
        aber am bin bist das dass dasselbe dein deine deinem deinen deiner dem den denn der \
        deren des dessen dich die dies diese diesem diesen dieser dieses dir du ein eine einem \
        einen einer eines er es euch euer eure hab habe haben hat hatte hatten ich ihm ihn ihnen \
        ihr ihre ihrem ihren ihrer im ist kann kannst konnen konnte man mein meine meinem meinen \
        meiner mich mir muss mussen ob oder sein seine seinem seinen seiner sich sie sind soll \
        sollte und uns unser unsere wann war waren warum was welche welchem welchen welcher \
        welches wem wen wenn wer werde werden weshalb wessen wie wieso will wir wird wo woher \
        wohin wollen worden wurde wurden"),
    (Language::Greek, "\
        αλλα αν αυτα αυτεσ αυτη αυτο αυτοι αυτοσ αυτουσ γιατι εγω εκεινη εκεινο εκεινοσ εμεισ \
        ενα ενασ εσεισ εσυ εχει η ηταν θα και κι μα μασ μια μου να ο οι ομωσ οπωσ οσο οταν οτι \
        ουτε ποια ποιεσ ποιο ποιοι ποιον ποιοσ ποιου ποτε που πωσ σασ σε στα στη στην στισ στο \
        στον στουσ τα τη την τησ τι τισ το τον του τουσ των ωσ"),
    (Language::Hungarian, "\
        a abban ahhoz ahogy ahol aki akik akkor amely amelyek amelyet ami amig amikor amit annak \
        arra az azok azon azonban azt azzal be de e ebben egy ehhez ekkor el emellett en ennek \
        erre es ez ezek ezen ezt ezzel ha hanem hiszen hogy hogyan hol honnan hova igen illetve \
        ilyen is kell kik kit legyen lehet lesz lett maga mely melyik mert mi miert mig mikor \
        milyen mint mit mivel nekem neki o ok olyan ot s sajat se sem semmi te ti vagy vagyok \
        vagyunk valamint valo van volt voltak"),
    (Language::Italian, "\
        a abbiamo agli ai al alla alle allo avere aveva avevano c che chi ci come cosa cui d \
        dagli dai dal dalla dalle dallo degli dei del dell della delle dello dov dove e ed era \
        erano essere fa fu gli ha hai hanno ho i il io l la le lei li lo loro lui ma me mi mia \
        mie miei mio negli nei nel nella nelle nello noi non nostra nostre nostri nostro o \
        perche qual quale quali quando quanta quante quanti quanto quella quelle quelli quello \
        questa queste questi questo qui s se sei si sia siamo siete sono sta stata stati stato \
        sua sue sugli sui sul sulla sulle sullo suo suoi tu tua tue tuo tuoi un una uno v vi voi \
        vostra vostro"),
    (Language::Norwegian, "\
        at ble blei bli blir både da de deg dei dem den denne der dere deres det dette di din \
        disse ditt du då eg ein eit eller en enn er et fordi ha hadde han hans har henne hennes \
        ho hun hva hvem hver hvilke hvilken hvilket hvis hvor hvordan hvorfor i jeg kan korleis \
        kva kvar kven kvifor man me meg men mi min mine mitt no når og også oss seg selv si sin \
        sine sitt skal skulle som så var vi vil ville vår være vært"),
    (Language::Portuguese, "\
        a ao aos aquela aquelas aquele aqueles aquilo as como cujo da das de dela delas dele \
        deles do dos e ela elas ele eles era eram essa essas esse esses esta estao estas estava \
        este estes estou eu foi foram ha isso isto lhe lhes mas me meu meus minha minhas na nas \
        no nos nossa nossas nosso nossos num numa o onde os ou pela pelas pelo pelos porque \
        quais qual quando quanto quantos que quem sao se ser seu seus sim sua suas te tem teu \
        teus tinha tu tua tuas um uma umas uns voce voces vos"),
    (Language::Romanian, "\
        a aceasta aceea acei aceia acel acela acele acest acesta aceste acestea acestei acestia \
        acestui ai aici al ale am ar are asta au avea ca care caror carui cate cati ce cei cel \
        cele cine cineva cui cum da daca dar de ea ei el ele era este eu face fi fie fost gasi i \
        iar ii il imi in isi iti le li lor lui mea mei mele meu mi mine noastra noi nostru o ori \
        sa sale sau se si sine sunt suntem ta tale te tu un una unde unei unele unor unui unul \
        va voastra voi vom vor vostru"),
    (Language::Russian, "\
        а бы был была были было быть в вам вас во все вы где да его ее если есть же зачем и или \
        им их как какая какие какой когда кого кому кто куда мне может мой моя мы наш не него \
        нее них но ну он она они оно откуда почему свой себе себя сколько такой тебе тебя тем то \
        того тоже той том ты чего чей чем что чтобы чья эта эти это этого этой этом этот я"),
    (Language::Spanish, "\
        a adonde aquel aquella aquellas aquello aquellos como cual cuales cuando cuanto cuantos \
        del donde e el ella ellas ello ellos en era eran eres es esa esas ese eso esos esta \
        estaba estan estas este esto estos estoy fue fueron ha habia han hay he la las le les lo \
        los me mi mis nos nosotros nuestra nuestras nuestro nuestros o os pero pues que quien \
        quienes se ser si sido son soy su sus te tenia ti tiene tienen tu tus u un una unas uno \
        unos usted ustedes vosotros y yo"),
    (Language::Swedish, "\
        att blev bli blir både de dem den denna deras dess dessa det detta dig din dina ditt du \
        där eller en er era ert ett ha hade han hans har henne hennes hon honom hur här jag kan \
        kunde man men mig min mina mitt ni när och oss sig sin sina sitt ska skulle som så vad \
        var vara varför varit vars vart vem vems vi vilka vilken vilket vår våra vårt är åt"),
    (Language::Tamil, "\
        அதன் அது அதை அந்த அல்லது அவன் அவர் அவர்கள் அவள் ஆனால் இதன் இது இதை இந்த உங்கள் உன் \
        எங்கள் எங்கே எதற்கு எது எந்த என எனக்கு என் என்ன என்று எப்படி எப்போது எவ்வளவு ஏன் ஒரு \
        தான் நாங்கள் நான் நீ நீங்கள் மற்றும் யாருடைய யார்"),
    (Language::Turkish, "\
        acaba ama bana ben benden beni benim beri bir biri birşey biz bizden bize bizi bizim bu \
        buna bunda bundan bunlar bunlari bunlarin bunu bunun burada da dahi de değil diye diğer \
        eğer hangi hangisi hani ile ise için işte kendi kendine kez ki kim kime kimi kimin kimse \
        mi mu mü nasil ne neden nerde nerede nereye niye niçin o olan olarak oldu olduğu olmak \
        on ona ondan onlar onlara onlari onlarin onu onun orada oysa sana sen senden seni senin \
        siz sizden size sizi sizin ve veya ya yani yoksa çünkü şey şu şuna şunu"),
];

#[cfg(test)]
mod tests {
    use super::super::normalise::WordNormaliser;
    use super::*;

    #[test]
    fn stop_words_are_folded_as_the_words_of_a_question_are() {
        for (language, words) in &STOP_WORDS {
            let mut folder = WordNormaliser::new(*language);
            for word in words.split_ascii_whitespace() {
                assert_eq!(folder.word(word).unstemmed, word, "{language:?}");
            }
        }
    }

    #[test]
    fn stop_words_ascend_and_every_language_has_some() {
        for (language, words) in &STOP_WORDS {
            let words: Vec<&str> = words.split_ascii_whitespace().collect();
            assert!(words.len() >= 30, "{language:?}");
            assert!(words.is_sorted_by(|a, b| a < b), "{language:?}");
        }
        let named: HashSet<Language> = STOP_WORDS.iter().map(|(language, _)| *language).collect();
        assert_eq!(named.len() + 1, Language::all().count());
    }

    #[test]
    fn a_stop_word_of_one_language_is_a_word_of_another() {
        assert!(is_stop_word(Language::English, "who"));
        assert!(!is_stop_word(Language::German, "who"));
        assert!(!is_stop_word(Language::None, "the"));
    }
}
