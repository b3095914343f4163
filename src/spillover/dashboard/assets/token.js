// The token of a server that asks for one. It stays in this tab: in its session storage, never in an address.

import { byId, replace, show } from "./dom.js";

const NAME = "spillover-token";
let asking = null;

export const token = () => sessionStorage.getItem(NAME);

export function forgetToken() {
  sessionStorage.removeItem(NAME);
  show(byId("token-forget"), false);
}

/** Ask the person for a token; false if they do not want to give one. Several requests ask only once. */
export function askToken(refused) {
  asking ??= new Promise((resolve) => openDialog(refused, resolve)).finally(() => {
    asking = null;
  });
  return asking;
}

function openDialog(refused, resolve) {
  const dialog = byId("token-dialog");
  const input = byId("token-input");
  if (refused)
    replace(
      byId("token-words"),
      "The server did not accept this token. Enter another one; it is kept in this tab only.",
    );
  input.value = "";
  dialog.addEventListener("close", () => resolve(keep(dialog.returnValue, input)), { once: true });
  dialog.returnValue = "";
  dialog.showModal();
  input.focus();
}

function keep(answer, input) {
  const given = input.value.trim();
  input.value = "";
  if (answer !== "use" || !given) return false;
  sessionStorage.setItem(NAME, given);
  show(byId("token-forget"), true);
  return true;
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  byId("token-dialog").close("use");
});
byId("token-cancel").addEventListener("click", () => byId("token-dialog").close(""));
byId("token-forget").addEventListener("click", () => {
  forgetToken();
  location.reload();
});
show(byId("token-forget"), Boolean(token()));
