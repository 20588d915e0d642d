// What forms ask before they send anything.

/**
 * Whether a field of the form holds what cannot be read; goes to the first such field. Such a value counts as none, and
 * none may mean all, or no limit.
 */
export function isFaulty(form) {
  const field = form.querySelector('[aria-invalid="true"]');
  field?.focus();
  return field !== null;
}
