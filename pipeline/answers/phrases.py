"""How assistants talk around a transcript, and how they decline: phrases that no page is likely to hold.

Each pattern names what the assistant does ("the transcription", "summarise it for you"), because pages greet, offer
help and apologise as well. All are matched against one line or paragraph, casefolded, without Markdown's marks.
"""

from __future__ import annotations

import re
from typing import Final

_MARKS_AROUND: Final = re.compile(r"\A[\s>#*_~`\[\](){}<]+|[\s>#*_~`\[\](){}<]+\Z")
MOST_CHAT_CHARS: Final = 400
"""A longer paragraph is no greeting."""

_YES: Final = (
    r"(?:sure(?: thing)?|certainly|of course|okay|ok|absolutely|got it|no problem|alright|understood|great|yes"
    r"|bien sûr|certainement|d'accord|natürlich|gerne|selbstverständlich|klar|claro|por supuesto|desde luego|certo"
    r"|certamente|com certeza|natuurlijk|конечно|хорошо|好的|当然|もちろんです|はい|承知しました|물론입니다|네)"
    r"(?![a-zà-ÿа-я])"
)
_HERE: Final = (
    r"(?:here(?:'s| is| are)|below (?:is|are)|the following is|this is|i(?:'ve| have) (?:transcribed|extracted|copied)"
    r"|as requested|voici|ci-dessous|hier (?:ist|is|sind|folgt)|nachfolgend|aquí (?:está|tiene)|a continuación|ecco"
    r"|segue|aqui está|hieronder|вот|ниже|以下|这是|下面|こちらが|다음은)"
)
_WORK: Final = (
    r"(?:transcri\w*|transkri\w*|trascri\w*|ocr|(?:extracted|recognized|recognised) text|markdown"
    r"|(?:text|contents?)(?: \w+)? (?:from|in|of|on) (?:the|your|this) (?:image|document|page|scan|picture|photo)"
    r"|(?:image|document|page|scan|picture|photo) (?:that )?you(?:'ve| have)? (?:provided|shared|uploaded|sent|gave)"
    r"|texte (?:extrait|de l'image|de la page|du document)|extrahierte\w* text|text (?:aus dem|der seite|des bildes)"
    r"|inhalt (?:der seite|des bildes|des dokuments)|texto (?:extraído|de la imagen|del documento|da imagem)"
    r"|testo (?:estratto|dell'immagine|del documento)|транскри\w*|расшифров\w*|текст\w* (?:с|на|из)"
    r" (?:изображ|страниц)\w*"
    r"|转录|识别|提取|图片中的|图像中的|文字起こし|書き起こし|転写|텍스트|전사)"
)
LEAD_IN: Final = re.compile(
    rf"(?:{_YES}[\s!,.:;,。!、—-]*)?{_HERE}.*{_WORK}.*[::]|{_YES}[\s!,.:;,。!、—-]+.*{_WORK}.*[::.!。]"
)
"""A whole first line: "Sure! Here is the transcription of the page:"."""

INTERJECTION: Final = re.compile(rf"{_YES}[\s!,.。!]*")
"""A whole first line that counts only with a lead-in after it."""

OFFER: Final = re.compile(
    r"(?:let me know|would you like|do you want|shall i|if you (?:need|want|would like|'d like|have)|feel free"
    r"|i can also|n'hésitez pas|souhaitez-vous|voulez-vous|si vous (?:souhaitez|avez)"
    r"|lass(?:en sie)? (?:es )?mich|möchten sie|wenn sie|falls sie|avísame"
    r"|si (?:necesitas|quieres|deseas)|¿(?:te|le|quieres|deseas)"
    r"|se (?:vuoi|desideri|hai bisogno)"
    r"|se (?:precisar|quiser)|laat (?:het )?me|если (?:вам|хотите|нужно)|如果您|如果你|如需|必要であれば)"
    r".*(?:\btranscri|\btranskri|\btrascri|\bocr\b|markdown"
    r"|(?:me|i) (?:to |can |could |should )?(?:summari|translat|reformat|format|convert|extract|adjust|clean|explain)"
    r"|tradui|résum|reformat|übersetz|zusammenfass|formatier|traduc|traduz|resum|riassum|tradu[rc]|vertal|samenvat"
    r"|перев[ео]|резюм|翻译|总结|整理|翻訳|要約)"
)
"""Anywhere in a last paragraph: "Let me know if you would like me to summarise it"."""

FAREWELL: Final = re.compile(
    r"(?:please )?(?:let me know|i hope (?:this|that|it)|hope (?:this|that) helps|feel free"
    r"|if you (?:need|have|want|would)|is there anything|would you like|do you need|n'hésitez pas|j'espère"
    r"|lass(?:en sie)? (?:es )?mich|ich hoffe"
    r"|avísame|espero que|spero che|fammi sapere|laat (?:het )?me|если |надеюсь|如果|希望|ご不明|何か)"
)
"""The start of a last paragraph. Letters end so as well: it counts only where other chat was found."""

REMARK: Final = re.compile(
    r"\W*(?:note|disclaimer|remarque|hinweis|anmerkung|nota|opmerking|примечание|注意|注|備考)\W{1,4}"
    r".*(?:transcri|transkri|trascri|\bocr\b|the (?:original )?image|l'image|das bild|la imagen"
    r"|транскри|图像|图片|画像)"
)
"""A last paragraph about the work: "Note: parts of the transcription may be wrong"."""

DESCRIPTION: Final = re.compile(
    r"(?:the|this) (?:image|picture|photo|scan|scanned image|screenshot)(?: you (?:provided|shared|uploaded|sent))?"
    r" (?:shows|contains|depicts|displays|appears|seems|features|is (?:a|an|of)|presents|includes)\b"
    r"|(?:the|this) (?:document|page) (?:you (?:provided|shared|uploaded|sent) )?(?:appears to be|seems to be|shows a"
    r"|depicts)\b"
    r"|i can see (?:a|an|that|the) |i see (?:a|an) (?:image|document|page|scan)"
    r"|l'image (?:montre|contient|représente)|das bild (?:zeigt|enthält)|la imagen (?:muestra|contiene)"
    r"|l'immagine (?:mostra|contiene)|a imagem (?:mostra|contém)|на изображении|这张图片|该图片|图片显示|この画像"
)
"""The start of a paragraph that tells of the page instead of copying it."""

REFUSAL: Final = re.compile(
    r"as an? (?:ai|artificial intelligence|(?:large )?language model)\b|i(?:'m| am) an ai\b"
    r"|i(?:'m| am) (?:just )?an? (?:ai|language model|text-based)"
    r"|(?:i(?:'m| am) (?:very |so |really )?sorry|i apologi[sz]e|sorry|unfortunately|apologies)\b.{0,60}"
    r"(?:(?:can(?:'t|not| not)|unable to|not able to|won't|will not|couldn't|could not)\b.{0,40}"
    r"(?:transcri|assist|help (?:you )?with (?:that|this)|process|view|see|read|access|open|extract|identify|provide"
    r"|fulfil|comply|interpret|analy)|no image|don't see (?:an|any) image)"
    r"|i (?:can(?:'t|not| not)|am unable to|'m unable to|am not able to|'m not able to|won't)\b.{0,40}"
    r"(?:transcri|assist with|help with (?:that|this)|process (?:this|the|that)|view (?:the|this|images)"
    r"|access (?:the|this)"
    r"|extract|read (?:the|this) (?:image|document|page|text)|see (?:the|any|an) image|provide (?:a|the) transcri"
    r"|fulfil)"
    r"|(?:please|could you) (?:upload|provide|share|attach) (?:the|an|a) (?:clearer |valid )?"
    r"(?:image|document|page|scan)"
    r"|(?:no|there is no) (?:image|attachment) (?:was |has been )?(?:provided|attached|uploaded)"
    r"|je suis désolée?\b.{0,60}(?:ne peux pas|ne suis pas en mesure)|je ne peux pas (?:transcrire|traiter|vous aider)"
    r"|en tant qu'(?:ia|intelligence|modèle)"
    r"|(?:es tut mir leid|entschuldigung|leider)\b.{0,60}(?:kann ich|ich kann|nicht in der lage)\b.{0,60}"
    r"(?:transkri|helfen|bild|dokument|lesen|verarbeiten)|als ki\b|als (?:sprachmodell|künstliche intelligenz)"
    r"|lo siento\b.{0,60}no puedo|como (?:una )?(?:ia|inteligencia artificial|modelo de lenguaje)"
    r"|mi dispiace\b.{0,60}non posso|desculpe\b.{0,60}não posso|het spijt me\b.{0,60}kan (?:ik )?(?:niet|geen)"
    r"|(?:извините|к сожалению)\b.{0,60}не могу|как (?:ии|языковая модель)"
    r"|(?:抱歉|对不起|很抱歉).{0,20}(?:无法|不能)|作为(?:一个)?(?:ai|人工智能|语言模型)"
    r"|申し訳(?:ありません|ございません).{0,40}(?:できません|できない)|죄송합니다.{0,40}(?:없습니다|수 없)"
)
"""Anywhere near the start of a short answer."""

BLANK_PAGE: Final = re.compile(
    r"(?:the |this |an? )?(?:page|image|document|scan)? ?(?:is |appears (?:to be )?|seems (?:to be )?|was )?"
    r"(?:completely |entirely |totally |mostly )?(?:blank|empty)(?: (?:page|image|document|scan))?"
    r"(?:,? (?:with|and|there is|contains?) no (?:visible |legible |readable )?(?:text|content|marks)"
    r"(?: (?:on|in) it| visible)?)?"
    r"|(?:there is |there's |i (?:see|can see|find) |contains? )?no (?:visible |legible |readable |discernible )?"
    r"(?:text|content|words|writing)(?: (?:is |was )?(?:visible|found|detected|present|available|to transcribe))?"
    r"(?: (?:on|in) (?:the|this) (?:page|image|document|scan))?"
    r"|(?:the |this )(?:page|image|document|scan) (?:contains|has|shows) no (?:visible |legible |readable )?"
    r"(?:text|content|words|writing)|n/?a|none"
    r"|(?:cette |la )?page (?:est )?(?:vide|blanche)|(?:die(?:se)? )?(?:seite ist leer|leere seite)"
    r"|(?:la |esta )?página (?:está )?(?:en blanco|vacía)|(?:la )?pagina (?:è )?(?:vuota|bianca)"
    r"|空白页?|空白ページ|(?:пустая страница|страница пуста)"
)
"""The whole of an answer that says that the page is blank. "Intentionally left blank" is print, and is copied."""


def plain_line(line: str) -> str:
    """A line as the patterns want it: casefolded, straight apostrophes, without the marks of Markdown around it."""
    return _MARKS_AROUND.sub("", line).replace("’", "'").casefold()
