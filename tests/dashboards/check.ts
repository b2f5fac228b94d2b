import type { Dashboard } from '@grafana/schema';
import dashboard from './orchestrator.json' with { type: 'json' };

// JSON modules give `string` where the types want one of a few words; the rest must fit as it is.
type Widened<T> = T extends string
  ? string
  : T extends (infer Item)[]
    ? Widened<Item>[]
    : T extends object
      ? { [Key in keyof T]: Widened<T[Key]> }
      : T;

export const checked: Widened<Dashboard> = dashboard;
