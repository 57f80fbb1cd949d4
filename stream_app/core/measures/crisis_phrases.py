"""Phrases of crisis language by family, for ``core.crisis``.

A phrase is a regular expression over the words of a sentence in small letters, joined by single
spaces, without apostrophes (``dont``). ``_`` stands for up to two words, ``{NAME}`` for an entry of
``PARTS``. A phrase begins with two letters, or with a group of alternatives that do. Every
repetition has a small bound, so that the time to search is linear in the length of the text.

The list is of common wordings, not of any text's. It names no method beyond what people say.
"""

from collections.abc import Mapping
from typing import Final

PARTS: Final[Mapping[str, str]] = {
    "WANT": "(?:want to|wanna|wanted to|gonna|going to|decided to|rather|might)",
    "THINK": "(?:thinking|think|thought|thoughts|plan|planning) (?:of|about|to)",
    "MYSELF": "my ?sel[fv]e?",
    "KILL": "(?:kill?|kill?ing|kill?ed|murder|murdering|unalive|unaliving)",
    "TABLETS": "(?:tablets|pills|meds|medication|paracetamol|antidepressants|painkillers)",
    "HE": "(?:he|hes|she|shes|they|theyre|husband|wife|boyfriend|girlfriend|partner|dad|mum|mom)",
    "HIM": (
        "(?:him|her|them|everyone|everybody|people|someone|(?:my|his|her) (?:ex|boss|dad|mum|mom"
        "|step ?dad|step ?mum|father|mother|husband|wife|brother|sister|kids|baby|teacher|family))"
    ),
    "ANY_MORE": "(?:any ?more|any longer)",
}

PHRASES: Final[Mapping[str, tuple[str, ...]]] = {
    "suicidal thoughts": (
        "{KILL} {MYSELF}",
        "(?:end|ending|hang|hanging|shoot|shooting|drown|drowning|poison|gas) {MYSELF}",
        "(?:{WANT}|{THINK}) (?:kms|unalive|unaliving|sewerslide|commit sudoku)",
        "(?:end|ending|take|taking|took) (?:my|my own) life",
        "{THINK} end(?:ing)? (?:it|it all|everything)",
        "{WANT} (?:end it all|end everything|end it tonight|end it$)",
        "(?:i am|im|i was|been|feel|feeling|felt|being|so|really) suicidal",
        "suicid(?:al|e) (?:thoughts|ideation|feelings|plan|plans)",
        "thoughts? of suicide",
        "(?:commit|committing|attempt|attempted|attempting|considering|contemplating) suicide",
        "(?:want to|wanna|wanted to|rather) (?:die|be dead)",
        "(?:wish i was|wish i were|rather be|better off) dead",
        "(?:jump|jumping) (?:off|from) (?:the|a|this) (?:bridge|roof|building|balcony|cliff)",
        "(?:jump|jumping|step|throw {MYSELF}) in front of (?:a|the) (?:train|car|bus|lorry|truck)",
        "(?:my|a) (?:suicide|last|second|first) attempt",
        "after my attempt",
        "i (?:tried|attempted) to (?:die|overdose)",
        "(?:dream|dreaming) (?:of|about) (?:suicide|dying|my own death)",
    ),
    "wish to be dead": (
        "(?:not|never|dont|wont|didnt) (?:want to |wanna )?wak(?:e|ing) up(?: again| tomorrow|$)",
        "(?:hope|hoping|wish|pray) (?:that )?i (?:dont|wont|never|didnt) wake up",
        "(?:better off|happier|easier) without me",
        "(?:better off|happier|easier) (?:if|with) (?:i was|i were|me) (?:gone|dead)",
        "(?:dont|do not|cant|no longer) (?:want to|wanna) (?:live|exist|be alive)",
        "(?:dont|do not) (?:want to|wanna) be here {ANY_MORE}",
        "(?:no|any) (?:point|reason) (?:in|of|to|for) (?:living|live|life|being alive)",
        "point (?:of|in) (?:living|being alive|life)",
        "(?:life|living) (?:is not|isnt|aint) worth",
        "nothing (?:left )?to live for",
        "(?:tired|sick|done) (?:of|with) (?:being alive|living|life)",
        "wish i (?:was|were|had) never (?:been )?born",
        "stop existing",
        "(?:let|lets) me die",
        "die in my sleep",
        "(?:if|when) i (?:wasnt|werent) here {ANY_MORE}",
        "relief (?:for them )?if i died",
        "(?:in|on) this (?:world|earth) {ANY_MORE}",
        "(?:disappear|vanish) (?:forever|permanently)",
        "if a (?:bus|car|train) (?:hit|killed) me",
        "(?:cant|cannot) (?:live|go on|keep going|carry on) (?:like this )?{ANY_MORE}",
        "(?:wouldnt|dont) (?:care|mind) if i (?:die|died)",
        "(?:hope|hoping|wish) (?:something|someone|a car|a bus) _(?:kills|shoots|hits) me",
    ),
    "plan or means": (
        "(?:saving|saved|hoarding|stockpiling|collecting) _{TABLETS}",
        "(?:least painful|painless|quickest|easiest) way to (?:go|die)",
        "(?:how|ways|way) to (?:die|kill {MYSELF}|end my life)",
        "how many (?:of my )?_{TABLETS} (?:would|does|do|will) it take",
        "(?:gun|barrel) in my mouth",
        "knife (?:next to|beside) me",
        "(?:picked|chosen|set) a date (?:to|for it)",
        "(?:suicide|goodbye) (?:note|notes|letter|letters)",
        "(?:wont|will not) be (?:here|around|alive) (?:by|for|next|much|tomorrow|in the|when)",
        "(?:loaded|load) the gun",
        "(?:over|on|at) the (?:wrong side of the )?(?:railing|railings|ledge|tracks)",
        "(?:edge|side) of the (?:roof|bridge|cliff)",
    ),
    "self-harm": (
        "(?:hurt|hurting|harm|harming|cut|cutting|burn|burned|burnt|burning) {MYSELF}(?! out)",
        "(?:starving|punish|punishing|hit|hitting) {MYSELF}",
        "(?:fresh|new) cuts on",
        "(?:cut|cutting) (?:last night|deeper|too deep)",
        "self ?harm(?:ed|ing|s)?",
        "(?:keep|started|been|start) cutting(?: again| my|$)",
        "(?:cut|slit|cutting|burned|burnt|burning) my (?:wrists?|arms?|thighs?|legs?|skin|veins)",
        "(?:blade|razor|scissors|knife) _(?:on {MYSELF}|to my (?:skin|arm|wrist|leg|throat))",
        "(?:bang|banging|smash|smashing) my head (?:against|on|off)",
    ),
    "harm to others": (
        "(?:{WANT}|{THINK}|will|ill) (?:{KILL}|stab|strangle|smother|poison) {HIM}",
        "(?:{WANT}|urges? to) (?:hurt|stab|shoot) {HIM}(?! feelings)",
        "(?:something|sth) to (?:the|my) baby",
        "(?:shoot|shooting|blow|blowing) up (?:the|this|my) (?:whole )?(?:school|office|place)",
        "(?:taking|take) the (?:kids|children|baby) with me",
    ),
    "danger now": (
        "(?:taken|took|swallowed) (?:all|all of|a whole|\\d{2,3}) (?:of )?(?:my |the )?{TABLETS}",
        "(?:taken|took|swallowed) _(?:packet|bottle|box)",
        "(?:taken|took|swallowed) (?:too many|a handful of|more) (?:of )?(?:my )?{TABLETS}",
        "(?:ive|have|i|just|think ive) (?:overdosed|od ?d|taken an overdose|took an overdose)",
        "{HE} (?:is |are |keeps )?(?:hitting|beating|choking|strangling|attacking|raping) me",
        "{HE} (?:just )?(?:hit|beat|choked|strangled|raped|punched) me (?:again|today|last night)",
        "(?:hell|theyll|going to|threatened to|says he will) kill me if (?:he|she|they|i leave)",
        "(?:i was|ive been|i got|i just got) (?:raped|drugged|assaulted|kidnapped)",
        "(?:touches|touching|touched) me (?:at night|down there|every)",
        "locked (?:{MYSELF} )?in (?:the|my) (?:bathroom|toilet|bedroom|cupboard|cellar)",
        "(?:someone|somebody|man|ex) (?:is |keeps |keep )?(?:following me|trying to break in)",
        "(?:wont|doesnt|cant) (?:let me leave|stop bleeding|stop the bleeding)",
        "(?:has|with|holding) a (?:knife|gun) (?:to my|at the door|on me)",
    ),
    "goodbye": (
        "(?:this is|its) my last (?:message|goodbye|day on earth|night on earth)",
        "(?:came|wanted|want|just|here) to say goodbye (?:to|forever|for good)",
        "goodbye (?:world|everyone|everybody|forever|for good)",
        "(?:wont|never) (?:hear from|see) me (?:again|ever)",
        "tell my (?:mum|mom|dad|kids|children|family|wife|husband) (?:that )?i (?:love|loved)",
        "see you on the other side",
        "(?:forgive me|sorry) for what im (?:about|going) to",
        "ill be gone (?:by|when|before|tomorrow)",
    ),
}
