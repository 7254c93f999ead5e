// [document] -> the verdict on each survey, and what an accepted one says of itself.
import { codeOf, discreet, input, output } from "./io.mjs";

const { Survey } = discreet;

const found = [];
for (const document of input) {
  try {
    const survey = await Survey.from(document);
    found.push({
      code: "ok", fingerprint: survey.fingerprint, name: survey.name, answers: survey.answers,
      questions: survey.questions.map(({ name, of }) => ({ name, of })), promise: survey.promise(),
      drawn: survey.drawn(), caution: survey.caution(), frontSize: survey.frontSize,
    });
  } catch (error) {
    found.push({ code: codeOf(error), message: error.message });
  }
}
output(found);
