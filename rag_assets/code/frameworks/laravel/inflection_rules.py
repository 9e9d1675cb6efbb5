"""The rules by which English nouns become plural and singular in Laravel.

They are those of Doctrine Inflector 2 (MIT licence, (c) 2006-2015 Doctrine Project), with the
uncountable nouns that Laravel 8 adds, in the order in which they are tried.
"""

from __future__ import annotations

from typing import Final

SINGULAR: Final = (
    (r"(s)tatuses$", r"\1tatus"),
    (r"(s)tatus$", r"\1tatus"),
    (r"(c)ampus$", r"\1ampus"),
    (r"^(.*)(menu)s$", r"\1\2"),
    (r"(quiz)zes$", r"\1"),
    (r"(matr)ices$", r"\1ix"),
    (r"(vert|ind)ices$", r"\1ex"),
    (r"^(ox)en", r"\1"),
    (r"(alias)(es)*$", r"\1"),
    (r"(buffal|her|potat|tomat|volcan)oes$", r"\1o"),
    (r"(alumn|bacill|cact|foc|fung|nucle|radi|stimul|syllab|termin|viri?)i$", r"\1us"),
    (r"([ftw]ax)es", r"\1"),
    (r"(analys|ax|cris|test|thes)es$", r"\1is"),
    (r"(shoe|slave)s$", r"\1"),
    (r"(o)es$", r"\1"),
    (r"ouses$", r"ouse"),
    (r"([^a])uses$", r"\1us"),
    (r"([m|l])ice$", r"\1ouse"),
    (r"(x|ch|ss|sh)es$", r"\1"),
    (r"(m)ovies$", r"\1ovie"),
    (r"(s)eries$", r"\1eries"),
    (r"([^aeiouy]|qu)ies$", r"\1y"),
    (r"([lr])ves$", r"\1f"),
    (r"(tive)s$", r"\1"),
    (r"(hive)s$", r"\1"),
    (r"(drive)s$", r"\1"),
    (r"(dive)s$", r"\1"),
    (r"(olive)s$", r"\1"),
    (r"([^fo])ves$", r"\1fe"),
    (r"(^analy)ses$", r"\1sis"),
    (r"(analy|diagno|^ba|(p)arenthe|(p)rogno|(s)ynop|(t)he)ses$", r"\1\2sis"),
    (r"(tax)a$", r"\1on"),
    (r"(c)riteria$", r"\1riterion"),
    (r"([ti])a$", r"\1um"),
    (r"(p)eople$", r"\1erson"),
    (r"(m)en$", r"\1an"),
    (r"(c)hildren$", r"\1hild"),
    (r"(f)eet$", r"\1oot"),
    (r"(n)ews$", r"\1ews"),
    (r"eaus$", r"eau"),
    (r"^tights$", r"tights"),
    (r"^shorts$", r"shorts"),
    (r"s$", r""),
)
"""Patterns with what replaces them, the first that is found counts."""

PLURAL: Final = (
    (r"(s)tatus$", r"\1tatuses"),
    (r"(quiz)$", r"\1zes"),
    (r"^(ox)$", r"\1en"),
    (r"([m|l])ouse$", r"\1ice"),
    (r"(matr|vert|ind)(ix|ex)$", r"\1ices"),
    (r"(x|ch|ss|sh)$", r"\1es"),
    (r"([^aeiouy]|qu)y$", r"\1ies"),
    (r"(hive|gulf)$", r"\1s"),
    (r"(?:([^f])fe|([lr])f)$", r"\1\2ves"),
    (r"sis$", r"ses"),
    (r"([ti])um$", r"\1a"),
    (r"(tax)on$", r"\1a"),
    (r"(c)riterion$", r"\1riteria"),
    (r"(p)erson$", r"\1eople"),
    (r"(m)an$", r"\1en"),
    (r"(c)hild$", r"\1hildren"),
    (r"(f)oot$", r"\1eet"),
    (r"(buffal|her|potat|tomat|volcan)o$", r"\1oes"),
    (r"(alumn|bacill|cact|foc|fung|nucle|radi|stimul|syllab|termin|vir)us$", r"\1i"),
    (r"us$", r"uses"),
    (r"(alias)$", r"\1es"),
    (r"(analys|ax|cris|test|thes)is$", r"\1es"),
    (r"s$", r"s"),
    (r"^$", r""),
    (r"$", r"s"),
)
"""See SINGULAR."""

IRREGULAR: Final = (
    (r"atlas", r"atlases"),
    (r"axe", r"axes"),
    (r"beef", r"beefs"),
    (r"blouse", r"blouses"),
    (r"brother", r"brothers"),
    (r"cafe", r"cafes"),
    (r"chateau", r"chateaux"),
    (r"niveau", r"niveaux"),
    (r"child", r"children"),
    (r"canvas", r"canvases"),
    (r"cookie", r"cookies"),
    (r"corpus", r"corpuses"),
    (r"cow", r"cows"),
    (r"criterion", r"criteria"),
    (r"curriculum", r"curricula"),
    (r"demo", r"demos"),
    (r"domino", r"dominoes"),
    (r"echo", r"echoes"),
    (r"foot", r"feet"),
    (r"fungus", r"fungi"),
    (r"ganglion", r"ganglions"),
    (r"gas", r"gases"),
    (r"genie", r"genies"),
    (r"genus", r"genera"),
    (r"goose", r"geese"),
    (r"graffito", r"graffiti"),
    (r"hippopotamus", r"hippopotami"),
    (r"hoof", r"hoofs"),
    (r"human", r"humans"),
    (r"iris", r"irises"),
    (r"larva", r"larvae"),
    (r"leaf", r"leaves"),
    (r"lens", r"lenses"),
    (r"loaf", r"loaves"),
    (r"man", r"men"),
    (r"medium", r"media"),
    (r"memorandum", r"memoranda"),
    (r"money", r"monies"),
    (r"mongoose", r"mongooses"),
    (r"motto", r"mottoes"),
    (r"move", r"moves"),
    (r"mythos", r"mythoi"),
    (r"niche", r"niches"),
    (r"nucleus", r"nuclei"),
    (r"numen", r"numina"),
    (r"occiput", r"occiputs"),
    (r"octopus", r"octopuses"),
    (r"opus", r"opuses"),
    (r"ox", r"oxen"),
    (r"passerby", r"passersby"),
    (r"penis", r"penises"),
    (r"person", r"people"),
    (r"plateau", r"plateaux"),
    (r"runner-up", r"runners-up"),
    (r"safe", r"safes"),
    (r"sex", r"sexes"),
    (r"sieve", r"sieves"),
    (r"soliloquy", r"soliloquies"),
    (r"son-in-law", r"sons-in-law"),
    (r"syllabus", r"syllabi"),
    (r"testis", r"testes"),
    (r"thief", r"thieves"),
    (r"tooth", r"teeth"),
    (r"tornado", r"tornadoes"),
    (r"trilby", r"trilbys"),
    (r"turf", r"turfs"),
    (r"valve", r"valves"),
    (r"volcano", r"volcanoes"),
    (r"abuse", r"abuses"),
    (r"avalanche", r"avalanches"),
    (r"cache", r"caches"),
    (r"curve", r"curves"),
    (r"emphasis", r"emphases"),
    (r"foe", r"foes"),
    (r"grave", r"graves"),
    (r"hoax", r"hoaxes"),
    (r"neurosis", r"neuroses"),
    (r"save", r"saves"),
    (r"wave", r"waves"),
    (r"oasis", r"oases"),
    (r"zombie", r"zombies"),
)
"""Singular and plural of nouns that follow no pattern."""

UNINFLECTED: Final = (
    "advice aircraft amoyese art audio baggage bison borghese bream breeches britches buffalo "
    "butter cantus carp cattle chassis clippers clothing coal cod coitus compensation "
    "congoese contretemps coreopsis corps cotton data debris deer diabetes djinn education "
    "eland elk emoji equipment evidence faroese feedback fish flounder flour foochowese food "
    "furniture gallows genevese genoese gilbertese gold headquarters herpes hijinks homework "
    "hottentotese impatience information innings jackanapes jeans jedi kin kiplingese "
    "knowledge kongoese leather love lucchese luggage mackerel Maltese management metadata "
    "mews money moose mumps music nankingese news nexus niasese nutrition offspring oil "
    "patience pekingese piedmontese pincers pistoiese plankton pliers pokemon police polish "
    "portuguese proceedings progress rabies rain research rhinoceros rice salmon sand "
    "sarawakese scissors series shavese shears sheep siemens silk sms soap spam species staff "
    "sugar swine talent toothpaste traffic travel trousers trout tuna us vermontese vinegar "
    "weather wenchowese wheat whiting wildebeest wood wool yengeese data trivia"
).split()
"""Nouns that have one form."""

UNINFLECTED_PATTERNS: Final = (r"\w+media", r"sea[- ]bass", r"social media")
"""Patterns of nouns that have one form."""

NO_SINGULAR: Final = (
    "clothes fascia fuchsia galleria mafia militia pants petunia sepia utopia"
).split()
"""Further nouns whose singular is the same."""

NO_PLURAL: Final = ("people media").split()
"""Further nouns whose plural is the same."""

UNCOUNTABLE: Final = (
    "audio bison cattle chassis compensation coreopsis data deer education emoji equipment "
    "evidence feedback firmware fish furniture gold hardware information jedi kin knowledge "
    "love metadata money moose news nutrition offspring plankton pokemon police rain "
    "recommended related rice series sheep software species swine traffic wheat"
).split()
"""Nouns that Laravel itself leaves alone in the plural."""
