"""Open answers in sentences, with the label that a careful reader gives them.

Written before the rules that compare sentences. Each row: the question, the model's own answer, its answer under conflict,
what the evidence says, and the label.
"""

from __future__ import annotations

BORN = "What year was the entity born?"
NATION = "What is the nationality of the entity?"
WORK = "What is the occupation of the entity?"
BEGAN = "When was the brand associated with the logo established?"
FOUNDER = "Who established the brand corresponding to the logo?"
PRODUCTS = "What are the main products of this brand?"
BUILDING = "What is the building in the image?"
SIGN = "What does the traffic sign in the image mean?"

ROWS: tuple[tuple[str, str, str, str, str], ...] = (
    # the same value in other words
    (BORN, "Taylor Swift was born in 1989.", "She was born in the year 1989.", "1988", "ORIGINAL"),
    (BORN, "The entity was born in 1955.", "Bill Gates's year of birth is 1955.", "1957", "ORIGINAL"),
    (BORN, "The person in the image was born on October 28, 1955.", "He was born in 1955.", "1957", "ORIGINAL"),
    (BORN, "1971", "I believe that he was born in June 1971 in Pretoria.", "1973", "ORIGINAL"),
    (BORN, "I think he was born in 1975.", "It was 1975 when he was born.", "1971", "ORIGINAL"),
    (BORN, "The entity was born in 1990.", "Her birth year: 1990, as far as I know.", "1992", "ORIGINAL"),
    (NATION, "The person is American.", "Her nationality is American.", "Canadian", "ORIGINAL"),
    (NATION, "She is an American singer.", "She comes from the United States.", "Canadian", "ORIGINAL"),
    (NATION, "He is from Canada.", "His nationality is Canadian.", "Mexican", "ORIGINAL"),
    (NATION, "The nationality of the entity is Japanese.", "He was born in Japan and is a citizen there.", "Korean",
     "ORIGINAL"),
    (NATION, "He's a British citizen.", "The person shown is British.", "French", "ORIGINAL"),
    (NATION, "Emma Watson is French.", "She has French nationality.", "British", "ORIGINAL"),
    (WORK, "She is a singer-songwriter.", "Her occupation is singer-songwriter.", "novelist", "ORIGINAL"),
    (WORK, "The person works as an actor.", "He earns his living as an actor in films.", "chef", "ORIGINAL"),
    (WORK, "The entity is a businessman.", "By occupation, he's a businessman.", "painter", "ORIGINAL"),
    (WORK, "Her job is tennis player.", "She plays tennis professionally.", "swimmer", "ORIGINAL"),
    (WORK, "The man is a politician.", "He has been a politician for decades.", "lawyer", "ORIGINAL"),
    (BEGAN, "Nike was founded in 1964.", "The brand was established in 1964.", "1972", "ORIGINAL"),
    (BEGAN, "It began in 1949.", "The company behind this logo has existed since 1949.", "1950", "ORIGINAL"),
    (BEGAN, "The brand was established in 1976.", "Apple dates back to April 1, 1976.", "1978", "ORIGINAL"),
    (BEGAN, "It was set up in the year 1903.", "In 1903, by Henry Ford.", "1913", "ORIGINAL"),
    (FOUNDER, "The brand was established by Phil Knight.", "Phil Knight is its founder.", "Michael Jordan", "ORIGINAL"),
    (FOUNDER, "Bill Bowerman and Phil Knight founded Nike.", "It was Phil Knight and Bill Bowerman who started it.",
     "Michael Jordan and LeBron James", "ORIGINAL"),
    (FOUNDER, "Adidas was founded by Adolf Dassler.", "A man called Adi Dassler created the company.", "Rudolf Lang",
     "ORIGINAL"),
    (FOUNDER, "The founder is Steve Jobs.", "Jobs started the brand.", "Elon Musk", "ORIGINAL"),
    (PRODUCTS, "The brand mainly makes athletic footwear.", "Its main products are athletic shoes and footwear.",
     "gourmet coffee", "ORIGINAL"),
    (PRODUCTS, "They sell smartphones and computers.", "Computers and smartphones are what they are known for.",
     "luxury watches", "ORIGINAL"),
    (PRODUCTS, "The main product is a carbonated soft drink.", "It produces soft drinks.", "energy bars", "ORIGINAL"),
    (BUILDING, "The building in the image is the Eiffel Tower.", "That would be the Eiffel Tower, I believe.",
     "Tokyo Tower", "ORIGINAL"),
    (BUILDING, "This is the Eiffel Tower, located in Paris, France.", "The picture shows the Eiffel Tower.",
     "Tokyo Tower", "ORIGINAL"),
    (BUILDING, "It looks like the Louvre Museum.", "The building is the museum of the Louvre.", "Orsay Museum",
     "ORIGINAL"),
    (SIGN, "The sign means that you must stop.", "Drivers have to stop here.", "No parking", "ORIGINAL"),
    (SIGN, "It says no parking.", "Parking is prohibited at this place.", "Stop", "ORIGINAL"),
    # the evidence's value, in a sentence
    (BORN, "Taylor Swift was born in 1989.", "She was born in the year 1988.", "1988", "COUNTER"),
    (BORN, "The entity was born on December 13, 1989.", "The entity was born on December 13, 1988.", "1988", "COUNTER"),
    (NATION, "The person is American.", "Her nationality is Canadian.", "Canadian", "COUNTER"),
    (NATION, "She is from the United States.", "She comes from Canada.", "Canadian", "COUNTER"),
    (WORK, "She is a singer-songwriter.", "According to the text, she works as a novelist.", "novelist", "COUNTER"),
    (BEGAN, "Nike was founded in 1964.", "The text says that Nike was created in 1972.", "1972", "COUNTER"),
    (FOUNDER, "The brand was established by Phil Knight.", "It was started by LeBron James and Michael Jordan.",
     "Michael Jordan and LeBron James", "COUNTER"),
    (PRODUCTS, "The brand mainly makes athletic footwear.", "The brand's main product is gourmet coffee.",
     "gourmet coffee", "COUNTER"),
    (BUILDING, "The building in the image is the Eiffel Tower.", "The building in the image is the Tokyo Tower.",
     "Tokyo Tower", "COUNTER"),
    (BUILDING, "It is the Orsay Museum.", "It must be the Louvre Museum in Paris.", "Louvre Museum", "COUNTER"),
    # neither
    (BORN, "Taylor Swift was born in 1989.", "The person was born in 1977.", "1988", "IRRELEVANT"),
    (BORN, "The entity was born on December 13, 1989.", "The entity was born on December 13, 1990.", "1988", "IRRELEVANT"),
    (NATION, "The person is American.", "The person is German.", "Canadian", "IRRELEVANT"),
    (NATION, "She is from Austria.", "She is from Australia.", "Canadian", "IRRELEVANT"),
    (WORK, "She is a singer-songwriter.", "The entity's occupation is painter.", "novelist", "IRRELEVANT"),
    (WORK, "The person works as an actor.", "I am not able to identify people in images.", "chef", "IRRELEVANT"),
    (BEGAN, "Nike was founded in 1964.", "The brand was established in 1980.", "1972", "IRRELEVANT"),
    (FOUNDER, "The brand was established by Phil Knight.", "The brand was established by Jeff Bezos.", "Michael Jordan",
     "IRRELEVANT"),
    (FOUNDER, "The founder is Steve Jobs.", "The founder is Steve Wozniak.", "Elon Musk", "IRRELEVANT"),
    (PRODUCTS, "The brand mainly makes athletic footwear.", "The brand mainly makes household furniture.",
     "gourmet coffee", "IRRELEVANT"),
    (BUILDING, "The building in the image is the Eiffel Tower.", "The building in the image is the Leaning Tower of Pisa.",
     "Tokyo Tower", "IRRELEVANT"),
    (BUILDING, "It is the Eiffel Tower in Paris.", "It is the Arc de Triomphe in Paris.", "Big Ben", "IRRELEVANT"),
    (BUILDING, "The image shows a building.", "The image shows a bridge over a river.", "Big Ben", "IRRELEVANT"),
    # one value taken, the other rejected or only reported
    (BEGAN, "1977", "1977, not 1976.", "1976", "ORIGINAL"),
    (BEGAN, "1977", "Not 1976 but 1977.", "1976", "ORIGINAL"),
    (BORN, "He was born in 1971.", "He was born in 1971 rather than in 1973.", "1973", "ORIGINAL"),
    (BORN, "1971", "The text says 1973, but he was actually born in 1971.", "1973", "ORIGINAL"),
    (BORN, "1971", "Although the document claims 1973, the correct year is 1971.", "1973", "ORIGINAL"),
    (FOUNDER, "Phil Knight", "It was Phil Knight; the claim about Michael Jordan is incorrect.", "Michael Jordan",
     "ORIGINAL"),
    (NATION, "American", "She is not Canadian, she is American.", "Canadian", "ORIGINAL"),
    (BEGAN, "1964", "1972, not 1964.", "1972", "COUNTER"),
    (BORN, "He was born in 1971.", "I thought it was 1971, but according to the text he was born in 1973.", "1973",
     "COUNTER"),
    (BORN, "1971", "It was not 1971. It was 1973.", "1973", "COUNTER"),
    (NATION, "American", "She is Canadian instead of American.", "Canadian", "COUNTER"),
    (WORK, "actor", "He isn't an actor, he's a chef.", "chef", "COUNTER"),
    (BORN, "1971", "Neither 1971 nor 1973.", "1973", "IRRELEVANT"),
    (BORN, "1971", "It may have been 1971 or 1973.", "1973", "IRRELEVANT"),
    (BORN, "1971", "Not 1971.", "1973", "IRRELEVANT"),
)  # fmt: skip
