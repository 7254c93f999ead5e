// Rows of answers: they are written, put in order and removed; Enter begins one below.
import { h } from "./dom.js";
import { textInput } from "./fields.js";
import { called, labelled, ordering, rename } from "./order.js";

/**
 * The list, and what puts an answer into it.
 * @param {object[]} answers
 * @param {object} terms `adder` is the id of the button that gets the focus when a row is removed;
 *   `fresh(answer)` makes the answer below one; `beside(answer)` stands beside it, if given
 */
export function answerRows(answers, { changed, redraw, adder, fresh, beside = () => null }) {
  const insert = (place, answer) => {
    answers.splice(place, 0, answer);
    redraw(`${answer.key}-text`);
  };
  const rows = answers.map((answer) => {
    const what = called(answer);
    const { handle, arrows } = ordering(answers, answer, what, redraw);
    const text = textInput(answer, "text", () => { rename(item, called(answer)); changed(); }, {
      id: `${answer.key}-text`, "aria-label": "Answer", placeholder: "Answer",
      onkeydown: (event) => {
        if (event.key !== "Enter" || event.isComposing) return;
        event.preventDefault();
        insert(answers.indexOf(answer) + 1, fresh(answer));
      },
    });
    const remove = h("button", {
      type: "button", class: "icon", ...labelled("Remove {}", what), disabled: answers.length < 3,
      onclick: () => {
        answers.splice(answers.indexOf(answer), 1);
        redraw(adder);
      },
    }, "×");
    const other = beside(answer);
    const item = h("li", { class: other ? "answer" : "answer scale", "data-key": answer.key }, handle, text, other, arrows, remove);
    return item;
  });
  return { list: h("ol", { class: "answers" }, rows), insert };
}
