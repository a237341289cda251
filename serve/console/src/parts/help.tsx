// The keys, in a dialog.
import type { Shortcut } from "../keys";
import { Dialog } from "./dialog";

interface HelpProps {
  shortcuts: Shortcut[];
  on: boolean;
  setOn: (on: boolean) => void;
  close: () => void;
}

export const Help = ({ shortcuts, on, setOn, close }: HelpProps) => (
  <Dialog title="Keys" close={close}>
    <dl class="keys">
      {shortcuts.map((one) => (
        <div>
          <dt>{one.keys.split(" ").map((key, index) => <>{index > 0 && " "}<kbd>{key}</kbd></>)}</dt>
          <dd>{one.does}</dd>
        </div>
      ))}
    </dl>
    <label class="check">
      <input type="checkbox" checked={on} onChange={(event) => setOn(event.currentTarget.checked)} />
      single keys are on
    </label>
  </Dialog>
);
