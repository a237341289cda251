//! Words that say how a question is asked and not what about: question words and the closed classes
//! of each language. Folded as the index folds, with their endings. Knows nothing of questions.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::language::Language;

/// Whether a folded word says nothing of what is looked for.
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

/// Ascending by word, each once.
#[rustfmt::skip]
static STOP_WORDS: [(Language, &str); 18] = [
    (Language::Arabic, "\
        اذا الا التي الذي الذين اللذان اللواتي الي ان انا انت انتم او اي اين بعد بل به بها بين \
        تلك ثم حتي حيث ذاك ذلك سوف علي عليه عليها عن عند عنه عنها غير في فيه فيها قد كان كانت كل \
        كم كما كيف لا لان لكن لم لما لماذا لن له لها لهم ليس ما ماذا متي مع من منذ منه منها نحن \
        نعم هؤلاء هذا هذه هل هم هن هنا هناك هو هي و يا"),
    (Language::Danish, "\
        ad af alle alt anden at blev blive bliver da de dem den denne der deres det dette dig \
        din dine disse dit dog du efter eller en end er et for fra få ham han hans har havde \
        have hende hendes her hos hun hvad hvem hvilke hvilken hvilket hvis hvor hvordan hvorfor \
        hvornår i ikke ind ingen ja jeg jer jeres jo kan kunne man mange med meget mellem men \
        mig min mine mit mod ned noget nogle nu når og også om op os over på sig sin sine sit \
        skal skulle som sådan til ud under var ved vi vil ville vor vore være været"),
    (Language::Dutch, "\
        aan al alle alles als altijd andere ben bent bij daar dan dat de der deze die dit doch \
        doen door dus een eens en er ge geen geweest haar had hadden heb hebben heeft hem het \
        hier hij hoe hoeveel hun ieder iedere iemand iets ik in is ja je jij jou jouw jullie kan \
        kon kunnen maar me meer men met mij mijn moet moeten na naar niemand niet niets nog nu \
        of om omdat onder ons onze ook op over reeds te tegen toch toen tot u uit uw van veel \
        voor waar waarom wanneer want waren was wat we wel welk welke werd wezen wie wiens wij \
        wil worden wordt zal ze zelf zich zij zijn zo zonder zou"),
    (Language::English, "\
        a about above across after again against all also although am among an and another any \
        anybody anyone anything are arent around as at be because been before being below \
        between both but by can cannot cant could couldnt did didnt do does doesnt doing done \
        dont down during each either else ever every everybody everyone everything few for from \
        further had hadnt has hasnt have havent having he her here hers herself hes him himself \
        his how hows i id if ill im in into is isnt it its itself ive just lets may me might \
        mine more most much must my myself neither no nobody none nor not nothing of off on once \
        one ones only or other others ought our ours ourselves out over own please same shall \
        she shes should shouldnt so some somebody someone something such than that thats the \
        their theirs them themselves then there these they theyd theyll theyre theyve this those \
        though through till to too toward towards under unless until up upon us very was wasnt \
        we wed were werent weve what whatever whats when whenever whens where wheres wherever \
        whether which whichever while who whoever whom whos whose why will with within without \
        wont would wouldnt yet you youd youll your youre yours yourself yourselves youve"),
    (Language::Finnish, "\
        ei eivät emme en et ette että he heidän heille heitä hän häneen hänelle hänen hänet \
        häntä ja johon joiden joka jonka jos jossa jota jotka kanssa keiden keitä ken kenelle \
        kenen ketkä ketä koska kuin kuinka kuka kun me meidän meille meitä mihin miksi mikä \
        mikään millainen milloin minkä minua minulla minulle minun minut minä missä mistä miten \
        mitkä mitä mukaan mutta myös ne niiden niin niissä niitä noin nuo nyt näiden näitä nämä \
        ole olen olet oli olin olivat olla olleet ollut on ovat poikki se sekä sen siihen siitä \
        sille sinua sinulle sinun sinut sinä sitä tai te teidän teille teitä tuo tuon tämä tämän \
        tässä tätä vaan vai vaikka vain yli"),
    (Language::French, "\
        ai aie ainsi alors apres as au aucun aucune aussi autre autres aux avaient avais avait \
        avant avec avez avoir avons c ca car ce ceci cela celle celles celui ces cet cette ceux \
        chaque chez ci combien comme comment d dans de depuis des donc dont du elle elles en \
        encore entre es est et etaient etais etait ete etre eu eux il ils j je jusque l la \
        laquelle le lequel les lesquels leur leurs lors lui m ma mais me meme mes moi moins mon \
        n ne ni non nos notre nous on ont ou par parce pas pendant peu peut plus pour pourquoi \
        quand que quel quelle quelles quels qui quoi s sa sans se sera ses si son sont sous sur \
        t ta te tes toi ton tous tout toute toutes tres tu un une vers vos votre vous y"),
    (Language::German, "\
        aber alle allem allen aller alles als also am an andere anderen anderer anderes auch auf \
        aus bei beim bin bis bist da dabei damit dann das dass dasselbe dein deine deinem deinen \
        deiner dem den denn der deren des dessen dich die dies diese diesem diesen dieser dieses \
        dir doch dort du durch ein eine einem einen einer eines er es etwas euch euer eure fur \
        gegen gewesen hab habe haben hat hatte hatten hier hinter ich ihm ihn ihnen ihr ihre \
        ihrem ihren ihrer im in ins ist jede jedem jeden jeder jedes jene kann kannst kein keine \
        keinem keinen keiner konnen konnte mal man manche mehr mein meine meinem meinen meiner \
        mich mir mit muss mussen nach nicht nichts noch nun nur ob oder ohne schon sehr sein \
        seine seinem seinen seiner selbst sich sie sind so soll sollte sondern uber um und uns \
        unser unsere unter viel vom von vor wann war waren warum was weil welche welchem welchen \
        welcher welches wem wen wenig wenn wer werde werden weshalb wessen wie wieder wieso will \
        wir wird wo woher wohin wollen worden wurde wurden zu zum zur zwischen"),
    (Language::Greek, "\
        αλλα αν απο αυτα αυτεσ αυτη αυτο αυτοι αυτοσ αυτουσ για γιατι δε δεν εγω εδω εκει εκεινη \
        εκεινο εκεινοσ εμεισ ενα ενασ εσεισ εσυ εχει η ηταν θα καθε και κατα κι μα μασ με μετα \
        μη μην μια μονο μου να ο οι ομωσ οπωσ οσο οταν οτι ουτε πιο ποια ποιεσ ποιο ποιοι ποιον \
        ποιοσ ποιου πολυ ποτε που προσ πωσ σαν σασ σε στα στη στην στισ στο στον στουσ τα τη την \
        τησ τι τισ το τον του τουσ των ωσ"),
    (Language::Hungarian, "\
        a abban ahhoz ahogy ahol aki akik akkor alatt amely amelyek amelyet ami amig amikor amit \
        annak arra at az azok azon azonban azt azzal be belül benne csak de e ebben egy egyeb \
        egyes egyik ehhez ekkor el ele ellen elott emellett en ennek erre es ez ezek ezen ezt \
        ezzel fel fele ha hanem hiszen hogy hogyan hol honnan hova ide igen illetve ilyen is \
        ismet itt jol kell ki kik kit le legyen lehet lesz lett ma maga mar mas meg mellett mely \
        melyik mert mi miert mig mikor milyen minden mindig mint mit mivel most mögött nagyon ne \
        nekem neki nem nincs o ok olyan ot ott pedig ra s sajat se sem semmi szamara szerint \
        szinte talan te tehat ti tovabba tul ugy utan vagy vagyok vagyunk valaki valami valamint \
        valo van vele velük volt voltak össze"),
    (Language::Italian, "\
        a abbiamo ad agli ai al alla alle allo allora altra altre altri altro anche ancora avere \
        aveva avevano c che chi ci come con contro cosa cui d da dagli dai dal dalla dalle dallo \
        degli dei del dell della delle dello di dov dove due e ed era erano essere fa fra fu gli \
        ha hai hanno ho i il in io l la le lei li lo loro lui ma me mi mia mie miei mio molto ne \
        negli nei nel nella nelle nello noi non nostra nostre nostri nostro o ogni oppure per \
        perche pero piu poco poi prima qual quale quali quando quanta quante quanti quanto \
        quella quelle quelli quello questa queste questi questo qui s se sei senza si sia siamo \
        siete sono sopra sotto sta stata stati stato su sua sue sugli sui sul sulla sulle sullo \
        suo suoi tra tu tua tue tuo tuoi tutta tutte tutti tutto un una uno v vi voi vostra \
        vostro"),
    (Language::Norwegian, "\
        alle alt at av ble blei bli blir både da de deg dei dem den denne der dere deres det \
        dette di din disse ditt du då eg ein eit eller en enn er et etter for fordi fra før ha \
        hadde han hans har henne hennes her ho hun hva hvem hver hvilke hvilken hvilket hvis \
        hvor hvordan hvorfor i ikke ikkje ingen inn ja jeg kan korleis kva kvar kven kvifor man \
        mange me med meg meget mellom men mi min mine mitt mot mye ned no noe noen noko nokon nå \
        når og også om opp oss over på seg selv si sin sine sitt skal skulle slik som så til ut \
        uten var ved vi vil ville vår være vært"),
    (Language::Portuguese, "\
        a ao aos aquela aquelas aquele aqueles aquilo as ate cada com como contra cujo da das de \
        dela delas dele deles depois desde do dos e ela elas ele eles em entre era eram essa \
        essas esse esses esta estao estas estava este estes estou eu foi foram ha isso isto ja \
        lhe lhes mais mas me mesmo meu meus minha minhas muito na nao nas nem no nos nossa \
        nossas nosso nossos num numa o onde os ou outra outras outro outros para pela pelas pelo \
        pelos por porque quais qual quando quanto quantos que quem sao se sem ser seu seus sim \
        so sob sobre sua suas tambem te tem teu teus tinha toda todas todo todos tu tua tuas um \
        uma umas uns voce voces vos"),
    (Language::Romanian, "\
        a acea aceasta aceea acei aceia acel acela acele acest acesta aceste acestea acestei \
        acestia acestui ai aici al ale alt alta alti altul am ar are asa asta astfel atat au \
        avea ca cand care caror carui cate cati ce cei cel cele cine cineva cu cui cum da daca \
        dar de deci deja din dintre doar dupa ea ei el ele era este eu face fi fie fiecare fost \
        gasi i iar ii il imi in intre isi iti la le li lor lui mai mea mei mele meu mi mine mult \
        nici nimic niste noastra noi nostru nu o ori pe pentru peste prin sa sale sau se si sine \
        sub sunt suntem ta tale te toata toate tot toti tu un una unde unei unele unor unui unul \
        va voastra voi vom vor vostru"),
    (Language::Russian, "\
        а без более бы был была были было быть в вам вас весь во вот все всего всех вы где да \
        даже для до его ее если есть еще же за зачем здесь и из или им их к как какая какие \
        какой ко когда кого кому кто куда ли либо лишь мне много может мой моя мы на над надо \
        наш не него нее нет ни них но ну о об один он она они оно от откуда очень по под почему \
        при про с сам свой себе себя сколько со так также такой там тебе тебя тем то тогда того \
        тоже той только том ты у уж уже чего чей чем что чтобы чья эта эти это этого этой этом \
        этот я"),
    (Language::Spanish, "\
        a adonde al algo algun alguna algunas alguno algunos ante antes aquel aquella aquellas \
        aquello aquellos aqui asi aun aunque bajo bien cada casi como con contra cual cuales \
        cualquier cuando cuanto cuantos de del desde donde dos durante e el ella ellas ello \
        ellos en entre era eran eres es esa esas ese eso esos esta estaba estan estas este esto \
        estos estoy fue fueron ha habia han hasta hay he la las le les lo los mas me mi mientras \
        mis mucho muy nada ni no nos nosotros nuestra nuestras nuestro nuestros o os otra otras \
        otro otros para pero poco por porque pues que quien quienes se segun ser si sido sin \
        sobre son soy su sus tambien tampoco tan tanto te tenia ti tiene tienen todo todos tu \
        tus u un una unas uno unos usted ustedes vosotros y ya yo"),
    (Language::Swedish, "\
        alla allt att av blev bli blir både de dem den denna deras dess dessa det detta dig din \
        dina ditt du där efter ej eller en er era ert ett från för ha hade han hans har henne \
        hennes hon honom hur här i icke ingen inom inte jag ju kan kunde man med mellan men mig \
        min mina mitt mot mycket ni nu när någon något några och om oss på samma sedan sig sin \
        sina sitt ska skulle som så till under upp ut utan vad var vara varför varit varje vars \
        vart vem vems vi vid vilka vilken vilket vår våra vårt än är åt över"),
    (Language::Tamil, "\
        அதன் அது அதை அந்த அல்லது அவன் அவர் அவர்கள் அவள் ஆனால் இதன் இது இதை இந்த இல்லை உங்கள் உன் \
        எங்கள் எங்கே எதற்கு எது எந்த என எனக்கு என் என்ன என்று எப்படி எப்போது எவ்வளவு ஏன் ஒரு \
        தான் நாங்கள் நான் நீ நீங்கள் மற்றும் மேலும் யாருடைய யார்"),
    (Language::Turkish, "\
        acaba ama ancak arada artik asla aslinda ayrica bana bazi bazilari belki ben benden beni \
        benim beri bile bir biraz biri birkaç birçok birşey biz bizden bize bizi bizim bu buna \
        bunda bundan bunlar bunlari bunlarin bunu bunun burada böyle da daha dahi de değil diye \
        diğer dolayi en eğer fakat gibi göre hala hangi hangisi hani hem henüz hep hepsi her \
        herhangi herkes hiç hiçbir ile ise itibaren için işte kadar karşin kendi kendine kez ki \
        kim kime kimi kimin kimse mi mu mü nasil ne neden nerde nerede nereye niye niçin o olan \
        olarak oldu olduğu olmak on ona ondan onlar onlara onlari onlarin onu onun orada oysa \
        pek rağmen sana sanki sen senden seni senin siz sizden size sizi sizin tarafindan tüm \
        var ve veya ya yani yine yoksa zaten çok çünkü öyle üzere şey şimdi şu şuna şunu şöyle"),
];

#[cfg(test)]
mod tests {
    use super::super::folding::Folder;
    use super::*;

    #[test]
    fn stop_words_are_folded_as_the_words_of_a_question_are() {
        for (language, words) in &STOP_WORDS {
            let mut folder = Folder::new(*language);
            for word in words.split_ascii_whitespace() {
                assert_eq!(folder.word(word).plain, word, "{language:?}");
            }
        }
    }

    #[test]
    fn stop_words_ascend_and_every_language_has_some() {
        for (language, words) in &STOP_WORDS {
            let words: Vec<&str> = words.split_ascii_whitespace().collect();
            assert!(words.len() >= 40, "{language:?}");
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
